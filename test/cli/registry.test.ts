/** The command with schemas: records in and out as JSON, and types. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { totalSchema } from '../engine/apps/avro-schemas.ts'
import { millrace } from '../support/millrace.ts'
import { RegistryServer } from '../support/registry-server.ts'

const app = join(import.meta.dirname, '..', 'engine', 'apps', 'avro-orders.ts')
const settings = ['--set', 'schema-registry.url=embedded', '--set', 'runtime.http.enabled=false', '--until-idle']

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-types-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const line = (key: string, id: unknown): string => JSON.stringify({ key, value: { id, amount: 2 }, timestamp: 1000 })

describe('feeding and printing records in Avro', () => {
  test('takes JSON and gives JSON', async () => {
    const stdin = [line('a', 1), line('a', 2)].join('\n')
    const { code, stdout, stderr } = await millrace(
      ['run', app, ...settings, '--feed', 'orders=-', '--print', 'orders', '--print', 'totals'],
      { stdin },
    )
    assert.equal(code, 0, stderr)
    const printed = stdout
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text) as { topic: string; value: unknown })
    const of = (topic: string): unknown[] => printed.filter((each) => each.topic === topic).map(({ value }) => value)
    assert.deepEqual(of('orders'), [
      { id: 1, amount: 2 },
      { id: 2, amount: 2 },
    ])
    assert.deepEqual(of('totals'), [
      { orders: 1, amount: 2, last: 1 },
      { orders: 2, amount: 4, last: 2 },
    ])
  })

  test('refuses a line that does not fit the schema, and names the field; what stands before it is kept', async () => {
    const stdin = [line('a', 1), line('a', 'two')].join('\n')
    const { code, stdout, stderr } = await millrace(
      ['run', app, ...settings, '--feed', 'orders=-', '--print', 'orders'],
      { stdin },
    )
    assert.equal(code, 2)
    assert.match(
      stderr,
      /Line 2 of - does not fit the serde of 'orders': .* id is no int; nothing was sent from this line on/,
    )
    assert.equal(stdout.trim().split('\n').length, 1)
  })
})

describe('millrace types', () => {
  const refused: ReadonlyArray<readonly [what: string, schema: unknown, says: RegExp]> = [
    [
      'record',
      { type: 'record', name: 'a-b', fields: [] },
      /the schema, of the type record, is called "a-b", and names/,
    ],
    [
      'field',
      { type: 'record', name: 'A', fields: [{ name: 'b c', type: 'int' }] },
      /field 0 of A is called "b c", and/,
    ],
    ['symbol', { type: 'enum', name: 'E', symbols: ["it's"] }, /a symbol of the enum E is "it's", and names in Avro/],
    ['number', 5, /the schema is 5, which is no type/],
  ]
  for (const [what, schema, says] of refused)
    test(`refuses a schema with what is no name in Avro, or no schema (${what}), with exit code 2`, async (t) => {
      const file = join(folderOf(t), 'wrong.avsc')
      writeFileSync(file, JSON.stringify(schema))
      const { code, stdout, stderr } = await millrace(['types', file])
      assert.deepEqual([code, stdout], [2, ''])
      assert.match(stderr, says)
      assert.match(stderr, /^millrace: \S+wrong\.avsc is no Avro schema: [^\n]+\.\n$/)
    })

  test('writes the types of files and of subjects', async (t) => {
    const server = await RegistryServer.start(t)
    server.registry.register('totals-value', totalSchema)
    const folder = folderOf(t)
    const file = join(folder, 'name.avsc')
    writeFileSync(file, JSON.stringify({ type: 'record', name: 'Name', fields: [{ name: 'id', type: 'long' }] }))
    const out = join(folder, 'types.ts')
    const set = ['--set', `schema-registry.url=${server.url}`]
    const { code, stderr } = await millrace(['types', file, 'totals-value', '--longs', 'bigint', '--out', out, ...set])
    assert.equal(code, 0, stderr)
    const text = readFileSync(out, 'utf8')
    assert.match(text, /export interface Name \{\n {2}readonly id: bigint\n\}/)
    assert.match(text, /export interface Total \{\n {2}readonly orders: number\n/)
  })

  test('writes those of the folder that an application keeps its schemas in, and leaves it as it is', async (t) => {
    const folder = folderOf(t)
    const url = `schema-registry.url=embedded:${folder}`
    const run = ['run', app, ...settings, '--set', url, '--feed', 'orders=-']
    assert.equal((await millrace(run, { stdin: line('a', 1) })).code, 0)
    const kept = readFileSync(join(folder, 'schemas.json'))
    const { code, stdout, stderr } = await millrace(['types', 'totals-value', '--set', url])
    assert.equal(code, 0, stderr)
    assert.match(stdout, /export interface Total \{\n {2}readonly orders: number\n/)
    assert.deepEqual(readFileSync(join(folder, 'schemas.json')), kept)
    const absent = await millrace(['types', 'nothing', '--set', url])
    assert.equal(absent.code, 2)
    assert.match(absent.stderr, /The subject nothing cannot be had .* 404/)
  })

  test('says what it cannot do', async (t) => {
    const server = await RegistryServer.start(t)
    server.registry.register('proto', 'syntax = "proto3"; message A {}', 'PROTOBUF')
    const set = ['--set', `schema-registry.url=${server.url}`]
    for (const [args, pattern] of [
      [['nothing'], /name it with --set schema-registry\.url/],
      [['nothing', ...set], /The subject nothing cannot be had .* 404/],
      [['proto', ...set], /holds PROTOBUF; make its types with protoc-gen-es/],
      [
        ['src/orders.proto'],
        /src\/orders\.proto holds PROTOBUF; make its types with protoc-gen-es \(the package @bufbuild\/protoc-gen-es\)\.\n$/,
      ],
      [['a', '--set', 'schema-registry.url=embedded'], /without a folder: it ends with its process; name the folder/],
      [['a', '--set', `schema-registry.url=embedded:${join(folderOf(t), 'no')}`], /There are no schemas in .*no: name/],
      [['a', '--set', `schema-registry.url=embedded:${app}`], /avro-orders\.ts', cannot be read \(ENOTDIR\)/],
      [['a', '--set', 'schema-registry.url=nowhere'], /is no address; write .*, or embedded, or embedded:<folder>/],
      [['missing.avsc'], /missing\.avsc cannot be read \(ENOENT\)/],
    ] as const) {
      const { code, stderr } = await millrace(['types', ...args])
      assert.equal(code, 2, stderr)
      assert.match(stderr, pattern)
    }
  })
})
