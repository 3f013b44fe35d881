/** The types that `millrace types` makes: compiled against what the serde reads. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from '../../../support/properties.ts'
import type { AvroNode } from '../../../../src/serde/registry/avro/avro-schema.ts'
import { avroTypeScript } from '../../../../src/serde/registry/avro/avro-typescript.ts'
import { samples } from './schemas.ts'

const payment = {
  type: 'record',
  name: 'Payment',
  namespace: 'com.acme',
  doc: 'Money that came.',
  fields: [
    { name: 'id', type: { type: 'string', logicalType: 'uuid' } },
    { name: 'amount', type: { type: 'bytes', logicalType: 'decimal', precision: 9, scale: 2 } },
    { name: 'at', type: { type: 'long', logicalType: 'timestamp-millis' } },
    { name: 'sequence', type: 'long' },
    { name: 'note', type: ['null', 'string'], default: null },
    { name: 'kind', type: { type: 'enum', name: 'Kind', symbols: ['CARD', 'CASH'] } },
    {
      name: 'by',
      type: ['null', { type: 'record', name: 'Card', fields: [] }, { type: 'record', name: 'Cash', fields: [] }],
    },
    { name: 'parts', type: { type: 'array', items: 'Payment' } },
  ],
}

test('types name every field, nullable ones and unions of records', () => {
  const text = avroTypeScript([payment as AvroNode], { longs: 'bigint' })
  assert.match(text, /\/\*\* Money that came\. \*\/\nexport interface Payment \{/)
  for (const line of [
    'id: string',
    'amount: string',
    'at: number',
    'sequence: bigint',
    'note: null | string',
    'kind: Kind',
    "by: null | { readonly 'com.acme.Card': Card } | { readonly 'com.acme.Cash': Cash }",
    'parts: ReadonlyArray<Payment>',
  ])
    assert.ok(text.includes(`  readonly ${line}\n`), line)
  assert.match(text, /export type Kind = 'CARD' \| 'CASH'/)
})

test('values of every schema have the types that were made for it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-types-'))
  try {
    const files = samples.map(({ name, schema, values }) => {
      // Bytes as an expression; the rest is JSON.
      const replacer = function (this: unknown, key: string, value: unknown): unknown {
        return (this as Record<string, unknown>)[key] instanceof Uint8Array ? '#bytes#' : value
      }
      const literals = fc
        .sample(values, 5)
        .map((value) => JSON.stringify(value, replacer).replaceAll('"#bytes#"', 'new Uint8Array()'))
      const file = join(folder, `${name}.ts`)
      writeFileSync(
        file,
        `${avroTypeScript([schema as AvroNode])}\nexport const values: ${name}[] = [${literals.join(',\n')}]\n`,
      )
      return file
    })
    const compiler = join(import.meta.dirname, '../../../../node_modules/.bin/tsc')
    execFileSync(compiler, ['--noEmit', '--strict', '--ignoreConfig', '--target', 'es2024', ...files], {
      encoding: 'utf8',
    })
  } catch (error) {
    assert.fail(String((error as { stdout?: string }).stdout ?? error))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
