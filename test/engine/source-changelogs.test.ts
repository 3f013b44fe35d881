/** A table whose topic serves as its changelog: a start finds the rows there that processing had made of its records. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { keySlot } from '../../src/base/hash.ts'
import { defineApp, type Serde, serdes, type Topology } from '../../src/index.ts'
import { SerdeWaits } from '../../src/serde/serde.ts'
import { byKey, type In } from './support/engine.ts'
import { VirtualEngine, type VirtualEngineOptions } from './support/virtual-engine.ts'

const partitions = 2
const text = { key: serdes.string, value: serdes.json<number>() }

const application = () =>
  defineApp({
    applicationId: 'sim',
    build: (topology) =>
      topology
        .stream('asks', text)
        .leftJoin(topology.table('rows', text), (ask, row) => [ask, row ?? null])
        .to('out', { key: serdes.string, value: serdes.json() }),
  })

const engineOf = (optimize: boolean): VirtualEngine =>
  new VirtualEngine({ compile: () => application().compile({ optimize }), settings: { durableStores: false } })

const placeOf = (key: string): number => keySlot(Buffer.from(key)) % partitions
const well = (key: string, value: number, timestamp: number): In => ({ key, value, timestamp, partition: placeOf(key) })
const elsewhere = (key: string, value: number, timestamp: number): In => ({
  ...well(key, value, timestamp),
  partition: 1 - placeOf(key),
})

async function asked(engine: VirtualEngine, ask: number, timestamp: number): Promise<unknown> {
  await engine.put('asks', [well('a', ask, timestamp)])
  await engine.settled()
  return byKey(await engine.read('out')).a?.at(-1)
}

async function failure(engine: VirtualEngine): Promise<{ readonly code: string; readonly message: string }> {
  await engine.until('it has failed', () => engine.count('failed') > 0)
  const failed = engine.facts.find((fact) => fact.type === 'failed')
  assert.ok(failed)
  return failed.error
}

describe('a topic that serves as changelog', () => {
  test('brings the rows back', async () => {
    const engine = engineOf(true)
    for (let start = 0; start < 2; start++) {
      await engine.start()
      await engine.runs()
      if (start === 0) await engine.put('rows', [well('a', 7, 1000)])
      assert.deepEqual(await asked(engine, start, 2000 + start), [start, 7])
    }
  })

  test('is refused at a key that another partitioner put there: the next start would miss its row', async () => {
    const engine = engineOf(true)
    await engine.start()
    await engine.runs()
    await engine.put('rows', [well('a', 7, 1000), well('b', 8, 1001), elsewhere('a', 9, 1002)])
    const { code, message } = await failure(engine)
    assert.equal(code, 'CONFIG_INVALID')
    assert.match(message, /takes the topic rows as the changelog of a table/)
    assert.match(
      message,
      new RegExp(`key of rows/${1 - placeOf('a')} at offset \\d belongs into partition ${placeOf('a')}`),
    )
    assert.match(message, /Set `topology\.optimization: none`/)
    await engine.passes(2000)
    assert.equal(engine.count('failed'), 1)
    assert.deepEqual(await engine.read('out'), [])
  })

  test('is refused by a start where it has such keys from before', async () => {
    const engine = engineOf(true)
    await engine.put('asks', [well('a', 1, 1000)])
    await engine.put('rows', [elsewhere('a', 9, 1000)])
    const member = { groupId: 'sim', groupInstanceId: null, memberId: '', generationId: -1 }
    const read = [0, 1].map((partition) => ({ topic: 'rows', partition, offset: partition === placeOf('a') ? 0 : 1 }))
    await engine.broker.commitOffsets(
      member,
      read.map((each) => ({ ...each, metadata: '' })),
    )
    await engine.start()
    const { code, message } = await failure(engine)
    assert.equal(code, 'CONFIG_INVALID')
    assert.match(message, /at offset 0 belongs into partition/)
    assert.equal(engine.count('running'), 0)
  })

  test('may have its keys anywhere where the table has a changelog of its own', async () => {
    const engine = engineOf(false)
    for (let start = 0; start < 2; start++) {
      await engine.start()
      await engine.runs()
      if (start === 0) await engine.put('rows', [elsewhere('a', 7, 1000)])
      // Records of partitions with different numbers wait for one another nowhere.
      await engine.settled()
      assert.deepEqual(await asked(engine, start, 2000 + start), [start, 7])
    }
  })
})

const joined = (topology: Topology, value: Serde<number> = text.value, more: object = {}): void =>
  topology
    .stream('asks', text)
    .leftJoin(topology.table('rows', { key: text.key, value, store: { name: 'kept', ...more } }), (ask, row) => [
      ask,
      row ?? null,
    ])
    .to('out', { key: serdes.string, value: serdes.json() })

const optimized = (build: (topology: Topology) => void) =>
  defineApp({ applicationId: 'sim', build }).compile({ optimize: true })

const raw = (key: string, value: string, timestamp: number): In => ({
  key,
  value: Buffer.from(value),
  timestamp,
  partition: placeOf(key),
})

async function begun(options: Partial<VirtualEngineOptions> = {}): Promise<VirtualEngine> {
  const engine = new VirtualEngine({ compile: () => optimized(joined), settings: { durableStores: false }, ...options })
  await engine.start()
  await engine.runs()
  return engine
}

async function begunAgain(engine: VirtualEngine): Promise<void> {
  await engine.start()
  await engine.runs()
}

/** It stands by, and then takes over. */
async function promoted(engine: VirtualEngine, tokenEpoch: number): Promise<void> {
  await engine.start()
  await engine.until('it stands by', () => engine.count('standby') > 0)
  await engine.passes(2000)
  engine.command({ type: 'ha-promote', tokenEpoch, paused: false })
  await engine.until('it has the identity', () => engine.count('identity-taken') > 0)
  engine.command({ type: 'ha-proceed', tokenEpoch })
  await engine.runs()
}

describe('what a topic that serves as changelog has beside rows', () => {
  test('is passed over by a start as it was when it came in', async () => {
    const engine = await begun({ policies: { decoding: 'skip' } })
    await engine.put('rows', [raw('a', '7', 1000), raw('a', '{bad', 1001)])
    assert.deepEqual(await asked(engine, 1, 2001), [1, 7])
    await begunAgain(engine)
    assert.deepEqual(await asked(engine, 2, 2002), [2, 7])
    await engine.put('rows', [raw('a', 'null', 1002)])
    assert.deepEqual(await asked(engine, 3, 2003), [3, null])
    await begunAgain(engine)
    assert.deepEqual(await asked(engine, 4, 2004), [4, null])
  })

  test('is passed over by a standby', async () => {
    const ha = { podId: 'one', groupMode: 'join' } as const
    const engine = new VirtualEngine({
      compile: () => optimized(joined),
      settings: { durableStores: false, ha },
      policies: { decoding: 'skip' },
    })
    await promoted(engine, 3)
    await engine.put('rows', [raw('a', '7', 1000), raw('a', '{bad', 1001)])
    assert.deepEqual(await asked(engine, 1, 2001), [1, 7])
    await promoted(engine, 4)
    assert.deepEqual(await asked(engine, 2, 2002), [2, 7])
  })

  test('ends a start where the policy has become to fail, with the place of the record', async () => {
    const policies = { decoding: 'skip' as 'skip' | 'fail' }
    const engine = await begun({ policies })
    await engine.put('rows', [raw('a', '7', 1000), raw('a', '{bad', 1001)])
    await engine.settled()
    policies.decoding = 'fail'
    await engine.start()
    const { code, message } = await failure(engine)
    assert.equal(code, 'DECODE_FAILED')
    assert.match(message, new RegExp(`The value of the record rows/${placeOf('a')} at offset 1 could not be decoded`))
    assert.equal(engine.count('running'), 0)
  })

  test('waits with the start for what its serde has to know', async () => {
    let known: PromiseWithResolvers<void> | undefined
    let waits = 0
    const value: Serde<number> = {
      name: 'waiting',
      serialize: (number) => text.value.serialize(number),
      deserialize: (bytes) => {
        if (known === undefined) return text.value.deserialize(bytes)
        waits++
        throw new SerdeWaits('not known yet', known.promise)
      },
    }
    const engine = await begun({ compile: () => optimized((topology) => joined(topology, value)) })
    await engine.put('rows', [raw('a', '7', 1000)])
    assert.deepEqual(await asked(engine, 1, 2001), [1, 7])
    const missing = Promise.withResolvers<void>()
    known = missing
    await engine.start()
    await engine.until('the row is asked for', () => waits > 0)
    await engine.passes(3000)
    assert.equal(waits, 1)
    assert.equal(engine.count('running') + engine.count('failed'), 0)
    known = undefined
    missing.resolve()
    await engine.runs()
    assert.deepEqual(await asked(engine, 2, 2002), [2, 7])
  })
})

describe('a table whose topic does not tell all of its rows', () => {
  const versions = {
    plain: (topology: Topology) => joined(topology),
    timed: (topology: Topology) =>
      topology
        .stream('asks', text)
        .leftJoin(topology.table('rows', { ...text, timestamp: (row) => row, store: 'kept' }), (ask, row) => [ask, row])
        .to('out', { key: serdes.string, value: serdes.json() }),
    versioned: (topology: Topology) => joined(topology, text.value, { type: 'versioned', historyRetention: '1h' }),
    stream: (topology: Topology) => topology.stream('rows', text).to('seen'),
  }

  for (const version of ['timed', 'versioned'] as const) {
    test(`has a changelog of its own: ${version}`, async () => {
      const engine = await begun({ compile: () => optimized(versions[version]) })
      await engine.put('rows', [well('a', 7, 1000)])
      assert.deepEqual(await asked(engine, 1, 2001), [1, 7])
      const [changelog] = await engine.broker.topics(['sim-kept-changelog'])
      assert.ok(changelog)
      await begunAgain(engine)
      assert.deepEqual(await asked(engine, 2, 2002), [2, 7])
    })
  }

  test('does not begin empty where the topic was its changelog before', async () => {
    let version: keyof typeof versions = 'plain'
    const engine = await begun({ compile: () => optimized(versions[version]) })
    await engine.put('rows', [well('a', 7, 1000)])
    assert.deepEqual(await asked(engine, 1, 2001), [1, 7])
    version = 'timed'
    await engine.start()
    const { code, message } = await failure(engine)
    assert.equal(code, 'STATE_CHANGED')
    assert.match(
      message,
      /the store kept had the topic rows for its changelog and has one of its own now .* begin anew/,
    )
    version = 'plain'
    await begunAgain(engine)
    assert.deepEqual(await asked(engine, 2, 2002), [2, 7])
  })

  test('is not advised to take its rows from the topic', async () => {
    let version: keyof typeof versions = 'stream'
    const engine = await begun({ compile: () => optimized(versions[version]) })
    await engine.put('rows', [well('a', 7, 1000)])
    await engine.settled()
    version = 'timed'
    await engine.start()
    const { code, message } = await failure(engine)
    assert.equal(code, 'STATE_CHANGED')
    assert.match(message, /keeps its rows only now, in the store kept.*Ways out: begin anew/)
  })
})
