/** Records whose schema is not known yet: their key waits, others go on, and what cannot be had is for the policy. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import avsc from 'avsc'
import { EngineError } from '../../src/base/errors.ts'
import { eventually } from '../support/millrace.ts'
import { EmbeddedRegistry } from '../../src/serde/registry/index.ts'
import { type RegistryMood, RegistryServer } from '../support/registry-server.ts'
import { laterOrderSchema, orderSchema, totalSchema } from './apps/avro-schemas.ts'
import { byKey, type In, TestEngine } from './support/engine.ts'

const orderType = avsc.Type.forSchema(orderSchema as avsc.Schema)
const laterType = avsc.Type.forSchema(laterOrderSchema as avsc.Schema)
const totalType = avsc.Type.forSchema(totalSchema as avsc.Schema)

function framed(id: number, payload: Buffer): Uint8Array {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(id, 1)
  return Buffer.concat([head, payload])
}

const order = (schema: number, key: string, id: number): In => ({
  key,
  value: framed(schema, orderType.toBuffer({ id, amount: 2 })),
})
const later = (schema: number, key: string, id: number): In => ({
  key,
  value: framed(schema, laterType.toBuffer({ channel: 'shop', id, amount: 2 })),
})

function start(t: TestContext, server: RegistryServer, config: Record<string, unknown> = {}): Promise<TestEngine> {
  return TestEngine.start(t, 'avro-orders', { 'schema-registry.url': server.url, ...config })
}

/** What the log and the indicator say of each way to fail. */
const causes = {
  error: /with 500/,
  elsewhere: /with 404 as no registry does/,
  missing: /with 404/,
  refusing: /refuses the credentials \(401\)/,
  garbage: /what is no JSON of a registry/,
  slow: /no answer within 2000 ms/,
  down: /cannot be reached/,
} as const

interface Shown {
  readonly name: string
  readonly status: string
  readonly details: Readonly<Record<string, unknown>>
}

async function indicator(engine: TestEngine): Promise<Shown | undefined> {
  const answer = (await (await fetch(`${engine.runtime.url}/health/ready`)).json()) as { components: Shown[] }
  return answer.components.find(({ name }) => name === 'schema-registry')
}

/** The health indicator is DOWN, and says why and for what. */
async function isShown(engine: TestEngine, id: string, cause: RegExp): Promise<boolean> {
  const shown = await indicator(engine)
  if (shown?.status !== 'DOWN' || shown.details.trouble === undefined) return false
  assert.match(String(shown.details.trouble), cause)
  assert.equal(shown.details.waitingFor, id)
  return true
}

interface Total {
  readonly orders: number
  readonly amount: number
  readonly last: number
}

/** What was written for each key, decoded apart from the engine. */
async function totals(engine: TestEngine): Promise<Record<string, Total[]>> {
  const out = await engine.readBytes('totals')
  const decoded = out.map(({ key, value }) => ({ key, value: totalType.fromBuffer(Buffer.from(value).subarray(5)) }))
  return byKey<Total>(decoded as never)
}

describe('a schema that comes up while the application runs', () => {
  test('is fetched once for all lanes and records, and what follows from them is exact', async (t) => {
    const server = await RegistryServer.start(t)
    const id = server.registry.register('orders-value', orderSchema)
    const engine = await start(t, server, { 'engine.lanes.count': 3 })
    await engine.reaches('RUNNING')
    const laterId = server.registry.register('orders-value', laterOrderSchema)
    server.mood = 'slow'
    const records: In[] = []
    for (let n = 0; n < 40; n++) {
      for (let k = 0; k < 50; k++) records.push(n % 3 === 1 ? later(laterId, `k${k}`, n) : order(id, `k${k}`, n))
    }
    await engine.put('orders', records)
    await engine.idle()
    const result = await totals(engine)
    assert.equal(Object.keys(result).length, 50)
    for (const list of Object.values(result)) {
      assert.deepEqual(
        list.map(({ last }) => last),
        Array.from({ length: 40 }, (_, n) => n),
        'in order',
      )
      assert.equal(list.at(-1)?.amount, 80)
    }
    assert.deepEqual(server.asked, [String(laterId)])
  })

  for (const mood of ['error', 'missing', 'refusing', 'garbage', 'slow', 'down'] as const) {
    test(`keeps its keys waiting while the registry is ${mood}; others go on, and then they do`, async (t) => {
      const server = await RegistryServer.start(t)
      const id = server.registry.register('orders-value', orderSchema)
      // Slow is longer than a request may take.
      server.slowMs = 10_000
      const engine = await start(t, server, {
        'runtime.http.enabled': true,
        'runtime.http.port': 0,
        'schema-registry.request-timeout': 2000,
        // A busy machine must not come to the end of the waiting.
        'schema-registry.give-up-after': 100_000,
        'commit-barrier.timeout-ms': 200_000,
      })
      await engine.reaches('RUNNING')
      const laterId = server.registry.register('orders-value', laterOrderSchema)
      if (mood === 'down') await server.down()
      else server.mood = mood as RegistryMood
      await engine.put('orders', [later(laterId, 'waits', 0), order(id, 'waits', 1)])
      await eventually('the registry is asked in vain', () =>
        engine.log.some(({ message }) => message.includes('records wait for the schema')),
      )
      await engine.put('orders', [order(id, 'other', 7)])
      await eventually('the indicator names the cause', () => isShown(engine, String(laterId), causes[mood]))
      if (mood === 'down') await server.up()
      else server.mood = 'well'
      await engine.idle()
      const result = await totals(engine)
      assert.deepEqual(
        result.waits?.map(({ last }) => last),
        [0, 1],
      )
      assert.deepEqual(
        result.other?.map(({ last }) => last),
        [7],
      )
      assert.ok(
        engine.log.some(({ message }) => message.includes('answers again')),
        'the log says so',
      )
    })
  }

  for (const policy of ['skip', 'dead-letter'] as const) {
    test(`that cannot be had in time is for the policy ${policy}`, async (t) => {
      const server = await RegistryServer.start(t)
      const id = server.registry.register('orders-value', orderSchema)
      const engine = await start(t, server, { 'schema-registry.give-up-after': 600, 'errors.decoding': policy })
      await engine.put('orders', [order(id, 'a', 0), order(77, 'a', 1), order(id, 'a', 2), order(77, 'b', 3)])
      await engine.idle()
      const result = await totals(engine)
      assert.deepEqual(
        result.a?.map(({ last }) => last),
        [0, 2],
      )
      assert.equal(result.b, undefined)
      assert.equal(engine.dropped('deserialize'), 2)
      const dead = await engine.readBytes('avro-orders-dead-letters')
      assert.deepEqual(
        dead.map(({ value }) => Buffer.from(value).subarray(0, 5).readUInt32BE(1)),
        policy === 'skip' ? [] : [77, 77],
      )
    })
  }
})

describe('records whose time lies in them, and global tables', () => {
  for (const mood of ['slow', 'down'] as const) {
    test(`are right while the registry is ${mood}`, async (t) => {
      const server = await RegistryServer.start(t)
      const id = server.registry.register('names-value', orderSchema)
      const config = { 'schema-registry.url': server.url }
      const engine = await TestEngine.start(t, 'avro-timed', config)
      await engine.reaches('RUNNING')
      const unwell = async (): Promise<void> => {
        if (mood === 'down') await server.down()
        else server.mood = 'slow'
      }
      const nameId = server.registry.register('names-value', laterOrderSchema)
      await unwell()
      await engine.put('names', [later(nameId, 'a', 3)])
      if (mood === 'down') {
        await eventually('it has been asked', () => engine.log.some(({ message }) => message.includes('records wait')))
        await server.up()
      }
      const names = engine.runtime.store<string, { amount: number }>('names')
      await eventually('the table has its row', async () => (await names.get('a'))?.amount === 2)
      server.mood = 'well'
      const orderId = server.registry.register('names-value', { ...laterOrderSchema, doc: 'of the orders' })
      await unwell()
      await engine.put('orders', [order(id, 'a', 1), later(orderId, 'a', 2), order(id, 'a', 3)])
      if (mood === 'down') {
        // Longer than the engine's thread waits: it starts over.
        await eventually('the engine starts over', () =>
          engine.log.some(({ message }) => message.includes('RESTARTING')),
        )
        await server.up()
      }
      await engine.idle()
      const out = await engine.read('timed')
      const byTime = out.map(({ timestamp, value }) => [timestamp - 1_600_000_000_000, value])
      assert.deepEqual(
        byTime,
        [1, 2, 3].map((n) => [n, { id: n, name: 2 }]),
      )
    })
  }
})

describe('the start', () => {
  test('waits for a registry that is away, and says why', async (t) => {
    const server = await RegistryServer.start(t)
    await server.down()
    const engine = await start(t, server)
    await eventually('it says what it waits for', () =>
      engine.log.some(({ message }) => message.includes('cannot be reached')),
    )
    assert.equal(engine.state, 'STARTING')
    await server.up()
    await engine.reaches('RUNNING')
    const id = server.registry.register('orders-value', orderSchema)
    await engine.put('orders', [order(id, 'a', 5)])
    await engine.idle()
    assert.deepEqual(
      (await totals(engine)).a?.map(({ last }) => last),
      [5],
    )
  })

  for (const mood of ['error', 'refusing', 'garbage', 'slow', 'elsewhere'] as const) {
    test(`waits for a registry that is ${mood}, says why, and goes on by itself`, async (t) => {
      const server = await RegistryServer.start(t)
      server.mood = mood
      server.slowMs = 10_000
      const engine = await start(t, server, { 'schema-registry.request-timeout': 2000 })
      await eventually('it says what it waits for', () => engine.log.some(({ message }) => causes[mood].test(message)))
      assert.equal(engine.state, 'STARTING')
      server.mood = 'well'
      await engine.reaches('RUNNING')
      const id = server.registry.register('orders-value', orderSchema)
      await engine.put('orders', [order(id, 'a', 5)])
      await engine.idle()
      assert.deepEqual(
        (await totals(engine)).a?.map(({ last }) => last),
        [5],
      )
    })
  }

  test('stops cleanly while the registry is away', async (t) => {
    const server = await RegistryServer.start(t)
    await server.down()
    const engine = await start(t, server)
    await eventually('it waits', () => engine.log.some(({ message }) => message.includes('cannot be reached')))
    assert.equal(await engine.stop(), 0)
  })

  test('needs no registry for what was known before', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'millrace-schemas-'))
    t.after(() => rmSync(dir, { recursive: true, force: true }))
    const server = await RegistryServer.start(t)
    const id = server.registry.register('orders-value', orderSchema)
    const settings = {
      'broker.bootstrap-servers': `embedded:${join(dir, 'broker')}`,
      'engine.state.store': 'lmdb',
      'engine.state.dir': join(dir, 'state'),
    }
    const first = await start(t, server, settings)
    await first.put('orders', [order(id, 'a', 0)])
    await first.idle()
    await first.stop()
    await server.down()
    const second = await start(t, server, settings)
    await second.put('orders', [order(id, 'a', 1)])
    await second.idle()
    assert.deepEqual(
      (await totals(second)).a?.map(({ orders }) => orders),
      [1, 2],
    )
    assert.deepEqual(server.asked, [])
  })

  for (const change of ['has other schemas under its ids', 'has lost a subject'] as const) {
    test(`asks for its own schemas again where the registry ${change}`, async (t) => {
      const dir = mkdtempSync(join(tmpdir(), 'millrace-schemas-'))
      t.after(() => rmSync(dir, { recursive: true, force: true }))
      const server = await RegistryServer.start(t)
      server.registry.register('orders-value', orderSchema)
      const settings = {
        'broker.bootstrap-servers': `embedded:${join(dir, 'broker')}`,
        'engine.state.store': 'lmdb',
        'engine.state.dir': join(dir, 'state'),
      }
      const first = await start(t, server, settings)
      await first.reaches('RUNNING')
      await first.stop()
      server.registry = new EmbeddedRegistry()
      if (change === 'has other schemas under its ids') server.registry.register('others-value', totalSchema)
      const id = server.registry.register('orders-value', orderSchema)
      const second = await start(t, server, settings)
      await second.put('orders', [order(id, 'a', 1)])
      await second.idle()
      const [total] = await second.readBytes('totals')
      const { body } = server.registry.handle({ method: 'GET', path: '/subjects/totals-value/versions/latest' })
      assert.equal(Buffer.from(total?.value as Uint8Array).readUInt32BE(1), (body as { id: number }).id)
      assert.deepEqual(
        (await totals(second)).a?.map(({ last }) => last),
        [1],
      )
    })
  }

  test('is ready again once a registry that was away is back, though nothing is asked of it', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'millrace-schemas-'))
    t.after(() => rmSync(dir, { recursive: true, force: true }))
    const server = await RegistryServer.start(t)
    const settings = {
      'broker.bootstrap-servers': `embedded:${join(dir, 'broker')}`,
      'engine.state.store': 'lmdb',
      'engine.state.dir': join(dir, 'state'),
      'runtime.http.enabled': true,
      'runtime.http.port': 0,
    }
    const first = await start(t, server, settings)
    await first.reaches('RUNNING')
    await first.stop()
    await server.down()
    const second = await start(t, server, settings)
    await second.reaches('RUNNING')
    await eventually('the registry is known to be away', async () => (await indicator(second))?.status === 'DOWN')
    await server.up()
    await eventually('it is UP', async () => (await indicator(second))?.status === 'UP')
    assert.deepEqual(server.asked, [])
  })

  test('refuses a schema that cannot read what is written, and names the field', async (t) => {
    const server = await RegistryServer.start(t)
    server.registry.register('orders-value', {
      ...orderSchema,
      fields: [
        { name: 'id', type: 'string' },
        { name: 'price', type: 'double' },
      ],
    })
    const engine = await start(t, server)
    await engine.reaches('FAILED')
    const { failure } = engine.runtime.view.state()
    assert.match(failure?.message ?? '', /the stream of orders cannot read what is written under orders-value/)
    assert.match(failure?.message ?? '', /the field id is a string .* an int in what reads/)
    assert.match(failure?.message ?? '', /the field amount is not in what was written/)
    assert.notEqual(await engine.stop(), 0)
  })

  test('does not wait for a registry that calls the schema invalid', async (t) => {
    const server = await RegistryServer.start(t)
    server.mood = 'invalid'
    const engine = await start(t, server)
    await engine.reaches('FAILED')
    const { failure } = engine.runtime.view.state()
    assert.equal(failure?.code, 'SCHEMA_REFUSED')
    assert.match(failure?.message ?? '', /totals.*Invalid schema/)
  })

  test('says what is wrong with a schema of the registry that is none', async (t) => {
    const server = await RegistryServer.start(t)
    server.registry.register('orders-value', orderSchema)
    server.mood = 'cut'
    const engine = await start(t, server)
    await engine.reaches('FAILED')
    const { failure } = engine.runtime.view.state()
    assert.equal(failure?.code, 'SCHEMA_REFUSED')
    assert.match(failure?.message ?? '', /orders-value, whose newest schema is 1: that is no schema of the format AVRO/)
  })

  test('refuses a schema that does not fit those before it', async (t) => {
    const server = await RegistryServer.start(t)
    server.registry.register('totals-value', { ...totalSchema, fields: [{ name: 'orders', type: 'string' }] })
    const engine = await start(t, server)
    await engine.reaches('FAILED')
    assert.match(engine.runtime.view.state().failure?.message ?? '', /totals-value.*the field orders is a string/)
  })

  test('refuses a damaged file of the embedded registry, and asks another one again for what is damaged of it', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'millrace-schemas-'))
    t.after(() => rmSync(dir, { recursive: true, force: true }))
    const settings = {
      'schema-registry.url': `embedded:${join(dir, 'registry')}`,
      'engine.state.store': 'lmdb',
      'engine.state.dir': join(dir, 'state'),
    }
    const flip = (file: string): void => {
      const bytes = readFileSync(file)
      const at = bytes.indexOf('amount')
      bytes[at] = (bytes[at] as number) ^ 1
      writeFileSync(file, bytes)
    }
    const first = await TestEngine.start(t, 'avro-orders', settings)
    await first.reaches('RUNNING')
    await first.stop()
    flip(join(dir, 'registry', 'schemas.json'))
    await assert.rejects(
      TestEngine.start(t, 'avro-orders', settings),
      (error) =>
        EngineError.is(error) &&
        error.code === 'SCHEMAS_DAMAGED' &&
        /registry.schemas\.json of the embedded schema registry is damaged: its checksum does not hold/.test(
          error.message,
        ),
    )
    const server = await RegistryServer.start(t)
    const id = server.registry.register('orders-value', orderSchema)
    const second = await start(t, server, { ...settings, 'schema-registry.url': server.url })
    await second.put('orders', [order(id, 'a', 0)])
    await second.idle()
    await second.stop()
    flip(join(dir, 'state', 'avro-orders', 'schemas.json'))
    const third = await start(t, server, { ...settings, 'schema-registry.url': server.url })
    await third.put('orders', [order(id, 'a', 0)])
    await third.idle()
    assert.deepEqual((await totals(third)).a?.at(-1)?.amount, 2)
  })

  test('needs no room on the disk for what it learns', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'millrace-schemas-'))
    t.after(() => rmSync(dir, { recursive: true, force: true }))
    const server = await RegistryServer.start(t)
    const id = server.registry.register('orders-value', orderSchema)
    // Where the file is to be written, nothing can be.
    mkdirSync(join(dir, 'avro-orders', 'schemas.json.new'), { recursive: true })
    const engine = await start(t, server, { 'engine.state.store': 'lmdb', 'engine.state.dir': dir })
    await engine.reaches('RUNNING')
    const laterId = server.registry.register('orders-value', laterOrderSchema)
    await engine.put('orders', [order(id, 'a', 0), later(laterId, 'a', 1)])
    await engine.idle()
    assert.deepEqual(
      (await totals(engine)).a?.map(({ last }) => last),
      [0, 1],
    )
    assert.ok(engine.log.some(({ message }) => message.includes('could not be kept in')))
  })

  test('asks for an address where serdes need one', async (t) => {
    await assert.rejects(
      TestEngine.start(t, 'avro-orders'),
      (error) =>
        EngineError.is(error) &&
        error.code === 'CONFIG_INVALID' &&
        /schema-registry\.url is not set/.test(error.message),
    )
  })
})
