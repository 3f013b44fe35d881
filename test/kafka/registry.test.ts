/**
 * A real registry, and the libraries of Java that define the formats: what the one side writes the other reads. The JVM
 * reads each of our records with the schema that the registry has for it, writes it anew, and we read that.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { create, createFileRegistry, type DescMessage, type Message, toBinary } from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import fc from '../support/properties.ts'
import { KafkaMissing } from '../../scripts/kafka/local-kafka.ts'
import { LocalRegistry } from '../../scripts/registry/local-registry.ts'
import { systemClock } from '../../src/base/clock.ts'
import { EngineError } from '../../src/base/errors.ts'
import { systemTimers } from '../../src/base/timers.ts'
import { RegistryClient } from '../../src/serde/registry/client.ts'
import { SchemaHub } from '../../src/serde/registry/hub.ts'
import { avro, jsonSchema, protobuf } from '../../src/serde/registry/index.ts'
import { SchemaStore } from '../../src/serde/registry/schema-store.ts'
import { httpTransport } from '../../src/serde/registry/transport.ts'
import type { Serde } from '../../src/serde/serde.ts'
import { files } from '../unit/serde/registry/proto-files.ts'
import { samples } from '../unit/serde/registry/schemas.ts'

const run = promisify(execFile)

async function registryForTests(): Promise<LocalRegistry | { readonly skip: string }> {
  try {
    return await LocalRegistry.start()
  } catch (error) {
    if (!(error instanceof KafkaMissing) || process.env.REQUIRE_KAFKA === '1') throw error
    return { skip: error.message }
  }
}

const registry = await registryForTests()
const skip = 'skip' in registry ? registry.skip : false

describe('a real registry', { skip }, () => {
  const local = registry as LocalRegistry
  const folder = mkdtempSync(join(tmpdir(), 'millrace-interchange-'))
  before(async () => {
    await run('javac', [
      '-cp',
      `${local.jars}/*`,
      '-d',
      folder,
      join(import.meta.dirname, 'registry', 'Interchange.java'),
    ])
  })
  after(async () => {
    await local.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  function hub(): SchemaHub {
    return new SchemaHub({
      client: new RegistryClient(httpTransport({ urls: [local.url], timeoutMs: 20_000 })),
      shownUrl: local.url,
      registersAll: false,
      memory: undefined,
      remember: () => undefined,
      giveUpAfterMs: 5000,
      againAfterMs: 0,
      clock: systemClock,
      timers: systemTimers,
      log: () => undefined,
    })
  }

  /** The serde as an application has it on a topic, connected to the registry. */
  async function connected<T>(serde: Serde<T>, topic: string, writes = true): Promise<Serde<T>> {
    const bound = serde.forTopic?.(topic, 'value') as Serde<T>
    const prepared = await hub().prepare(bound.schemas?.needs(writes, `the sink to ${topic}`) ?? [])
    const asking = hub()
    const store = new SchemaStore(
      (id) => {
        void asking.schema(id).then((answer) => store.take(answer))
      },
      () => 0,
    )
    store.take(prepared)
    bound.schemas?.connect(store)
    return bound
  }

  /** Each record, as the JVM writes it anew. */
  async function throughJava(records: readonly Uint8Array[]): Promise<Buffer[]> {
    const descriptors = Buffer.from(
      toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file: files.slice(0, 2) })),
    )
    const lines = [descriptors, ...records].map((bytes) => Buffer.from(bytes).toString('base64'))
    const java = run('java', ['-cp', `${folder}:${local.jars}/*`, 'Interchange', local.url], { maxBuffer: 1e9 })
    java.child.stdin?.end(`${lines.join('\n')}\n`)
    const { stdout } = await java
    return stdout
      .trim()
      .split('\n')
      .map((line) => Buffer.from(line, 'base64'))
  }

  test(`Avro: ${samples.length} schemas of every type and logical type, 50 records of each`, async () => {
    const sent: Array<{ serde: Serde<unknown>; value: unknown; bytes: Uint8Array }> = []
    for (const { name, schema, values } of samples) {
      const serde = await connected(avro(schema as object, { register: 'on-start' }), name)
      for (const value of fc.sample(values, 50)) sent.push({ serde, value, bytes: serde.serialize(value) })
    }
    const back = await throughJava(sent.map(({ bytes }) => bytes))
    assert.equal(back.length, sent.length)
    assert.deepEqual(
      sent.map(({ serde }, i) => serde.deserialize(back[i] as Buffer)),
      sent.map(({ value }) => value),
    )
  })

  test('Protobuf: nested messages, maps, oneofs, enums, imports', async () => {
    const types = createFileRegistry(create(FileDescriptorSetSchema, { file: files }))
    const order = types.getMessage('com.acme.Order') as DescMessage
    const line = types.getMessage('com.acme.Order.Line') as DescMessage
    const serde = (await connected(protobuf([order, line], { register: 'on-start' }), 'orders')) as Serde<Message>
    const messages = Array.from({ length: 50 }, (_, i) =>
      i % 3 === 0
        ? create(line, { sku: `s${i}`, count: -1 - i } as never)
        : create(order, {
            id: `o${i}`,
            amount: { units: BigInt(i) * 10n ** 15n, currency: 'CHF' },
            lines: [{ sku: 'é', count: i }],
            tags: { a: i },
            paid: i % 2 === 0 ? { case: 'card', value: '47' } : { case: 'cash', value: true },
            state: i % 3,
            raw: Uint8Array.of(i, 255),
          } as never),
    )
    const back = await throughJava(messages.map((message) => serde.serialize(message)))
    assert.deepEqual(
      back.map((bytes) => serde.deserialize(bytes)),
      messages,
    )
  })

  test('JSON Schema', async () => {
    const schema = {
      type: 'object',
      title: 'Order',
      properties: { id: { type: 'string' }, amount: { type: 'number' } },
    }
    const serde = await connected(jsonSchema(schema, { register: 'on-start' }), 'json-orders')
    const values = [{ id: 'ü', amount: 1.5 }, { id: '', amount: -3 }, {}]
    const back = await throughJava(values.map((value) => serde.serialize(value)))
    assert.deepEqual(
      back.map((bytes) => serde.deserialize(bytes)),
      values,
    )
  })

  test('a newer schema is read by an older application, and the newest by one without a schema', async () => {
    const older = { type: 'record', name: 'R', namespace: 'x', fields: [{ name: 'a', type: 'int' }] }
    const newer = { ...older, fields: [...older.fields, { name: 'b', type: 'string', default: '' }] }
    const old = await connected(avro<{ a: number }>(older, { register: 'on-start' }), 'evolving')
    const next = await connected(avro(newer, { register: 'on-start' }), 'evolving')
    const [record] = await throughJava([next.serialize({ a: 4, b: 'x' })])
    const reader = await connected(avro(older), 'evolving', false)
    assert.deepEqual(reader.deserialize(record as Buffer), { a: 4 })
    const latest = await connected(avro(), 'evolving', false)
    assert.deepEqual(latest.deserialize(old.serialize({ a: 1 })), { a: 1, b: '' })
  })

  test('a schema that does not fit is refused by the registry, with its reason', async () => {
    const before = { type: 'record', name: 'R', fields: [{ name: 'a', type: 'int' }] }
    const client = httpTransport({ urls: [local.url], timeoutMs: 20_000 })
    await client({ method: 'PUT', path: '/config', body: { compatibility: 'BACKWARD' } })
    await connected(avro(before, { register: 'on-start' }), 'strict')
    await assert.rejects(
      connected(avro({ ...before, fields: [{ name: 'z', type: 'string' }] }, { register: 'on-start' }), 'strict'),
      (error) => EngineError.is(error) && error.code === 'SCHEMA_REFUSED',
    )
    await assert.rejects(connected(avro(before), 'nowhere'), /does not hold the schema|does not exist/)
  })
})
