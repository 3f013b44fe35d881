/** Records of two streams that were told to have no partner, beside others of their key, side and time. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Headers } from '../../../src/broker/wire/headers.ts'
import { defineApp, serdes } from '../../../src/index.ts'
import { Rec } from '../../../src/operators/contract.ts'
import { WaitingRecords } from '../../../src/operators/joins/waiting-records.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import type { KeyValueStore, StoreSpec, WindowStore } from '../../../src/state/contract.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'
import { type Waiting, waitingSerde } from '../../../src/topology/serdes/internal-serdes.ts'
import { open, specOf } from '../state/store-suite.ts'

const text = { key: serdes.string, value: serdes.string }

/** `l a L1@10` is a record of the left stream; what stands behind its time is a header of its own. */
async function joined(
  how: 'leftJoin' | 'outerJoin',
  within: { readonly before: number; readonly after: number },
  ...records: readonly string[]
): Promise<string[]> {
  const app = defineApp({
    applicationId: 'test',
    build(topology) {
      const left = topology.stream('l', text)
      const right = topology.stream('r', text)
      const both = (a: string | null, b: string | null): string => `${a} ${b}`
      const pairs =
        how === 'leftJoin' ? left.leftJoin(right, both, { within }) : left.outerJoin(right, both, { within })
      pairs.to('out', text)
    },
  })
  const driver = new TopologyTestDriver(app, { config: { 'watermark.idleness-timeout': 1 } })
  for (const record of records) {
    const [, topic, key, value, at, header] = /^(\S) (\S) (\S+)@(\d+) ?(\S*)$/.exec(record) as unknown as string[]
    await driver.input(topic as string).pipe(key as string, value as string, {
      timestamp: Number(at),
      headers: header ? [['h', header]] : [],
    })
    // The other topic does not hold back time.
    await driver.advanceWallClock(1)
  }
  const told = driver.output<string, string>('out', text).readAll()
  driver.close()
  return told.map(({ value, timestamp, headers }) =>
    [`${value}@${timestamp}`, ...headers.map(([, header]) => header)].join(' '),
  )
}

describe('a record that was told to have no partner', () => {
  const back = { before: 20, after: 0 }

  test('leaves a late one of its time to a partner that is in time', async () => {
    const records = ['l a L1@10', 'r z Rz@12', 'l a late@10', 'r a R@5', 'r z Rz2@100']
    const outer = await joined('outerJoin', back, ...records)
    assert.deepEqual(
      outer.filter((pair) => !pair.includes('Rz')),
      ['L1 null@10', 'late R@10'],
    )
    assert.deepEqual(await joined('leftJoin', back, ...records), ['L1 null@10', 'late R@10'])
  })

  test('stays alone, as do the others that were told with it', async () => {
    const records = ['l a L1@10', 'l a L2@10', 'r z Rz@12', 'l a late@10', 'l a later@10', 'r a R@5', 'r a R2@6']
    assert.deepEqual(await joined('leftJoin', back, ...records), [
      ...['L1 null@10', 'L2 null@10'],
      ...['late R@10', 'later R@10', 'late R2@10', 'later R2@10'],
    ])
  })

  test('leaves its time to a late one on the right side as well', async () => {
    const records = ['r a R1@10', 'l z Lz@12', 'r a late@10', 'l a L@5', 'r z Rz@100']
    const outer = await joined('outerJoin', { before: 0, after: 20 }, ...records)
    assert.deepEqual(
      outer.filter((pair) => !pair.includes('z')),
      ['null R1@10', 'L late@10'],
    )
  })

  test('has its own headers, whatever else waits of its key and time', async () => {
    const records = ['l a L1@10 one', 'l a L2@10 two', 'l a L3@10', 'l a L4@11 four', 'r z Rz@50 five']
    assert.deepEqual(await joined('leftJoin', { before: 5, after: 5 }, ...records), [
      ...['L1 null@10 one', 'L2 null@10 two', 'L3 null@10', 'L4 null@11 four'],
    ])
  })
})

const serde = waitingSerde(serdes.string, serdes.string, serdes.string)
const spec = specOf({
  keySerde: serdes.bytes as StoreSpec['keySerde'],
  valueSerde: serde as StoreSpec['valueSerde'],
  timestamped: false,
})

const length = (count: number): number[] => [0, 0, 0, count]
const chunk = (value: string): number[] => [...length(value.length), ...Buffer.from(value)]

/** As builds wrote it that kept the headers of the last record, and no places. */
const earlier = (left: boolean, headers: Headers, values: readonly string[]): Uint8Array =>
  Uint8Array.from([
    ...[left ? 1 : 0, ...chunk('k'), ...length(headers.length)],
    ...headers.flatMap(([name, value]) => [...chunk(name), 1, ...chunk(value as string)]),
    ...[...length(values.length), ...values.flatMap(chunk)],
  ])

describe('rows of records without a partner', () => {
  const one: Headers = [['h', 'one']]
  const two: Headers = [['h', 'two']]

  test('of earlier builds are read: those that wait, with the headers that are there, and those that were told', () => {
    const records = ['a', 'b'].map((value, place) => ({ value, headers: one, place }))
    assert.deepEqual(serde.deserialize(earlier(true, one, ['a', 'b'])), { left: true, key: 'k', records, told: [] })
    assert.deepEqual(serde.deserialize(earlier(false, [], [])), { left: false, key: 'k', records: [], told: 'all' })
  })

  test('begin in the form of earlier builds, and have no other where that says all', () => {
    const rowOf = (records: Waiting['records'], told: Waiting['told'] = []): Uint8Array =>
      serde.serialize({ left: true, key: 'k', records, told })
    const [a, b] = [
      { value: 'a', headers: one, place: 0 },
      { value: 'b', headers: two, place: 1 },
    ] as const
    assert.deepEqual(rowOf([a]), earlier(true, one, ['a']))
    assert.deepEqual(rowOf([], 'all'), earlier(true, [], []))
    const both = earlier(true, two, ['a', 'b'])
    assert.deepEqual(rowOf([a, b]).subarray(0, both.length), both)
    const told = earlier(true, [], [])
    assert.deepEqual(rowOf([], [0]).subarray(0, told.length), told)
  })

  test('come back as they were written', () => {
    const rows: readonly Waiting[] = [
      { left: true, key: 'k', records: [{ value: 'a', headers: two, place: 3 }], told: [] },
      {
        left: false,
        key: 'k',
        records: [
          { value: 'a', headers: one, place: 0 },
          { value: 'b', headers: [], place: 2 },
          { value: 'c', headers: two, place: 3 },
        ],
        told: [],
      },
      { left: true, key: 'k', records: [], told: [0, 2, 70_000] },
      { left: true, key: 'k', records: [], told: 'all' },
    ]
    for (const row of rows) assert.deepEqual(serde.deserialize(serde.serialize(row)), row)
  })

  test('that an earlier build told stay told, with all of their time', () => {
    const store = open<KeyValueStore<unknown, Waiting>>(spec, new MemoryBackend())
    const memory = open<WindowStore<unknown, unknown>>(
      specOf({ kind: 'window', windowSizeMs: 10, retentionMs: 100, retainDuplicates: true, timestamped: false }),
      new MemoryBackend(),
    )
    const recordsIn = (): WaitingRecords => {
      const records = new WaitingRecords(store, serdes.string, (timestamp) => timestamp + 10)
      records.remembers('left', memory)
      records.init()
      return records
    }
    const rec = new Rec('k', 'a', 5, [], undefined as never, undefined, undefined)
    recordsIn().add(rec, true)
    for (const [id] of [...store.all()]) store.put(id, serde.deserialize(earlier(true, [], [])))
    const records = recordsIn()
    assert.equal(records.size, 0)
    assert.equal(records.toldOf('k', 5, true), 'all')
    assert.ok(records.addToTold(rec, true))
    assert.equal(records.toldOf('k', 5, true), 'all')
    records.forget(6)
    assert.equal([...store.all()].length, 0)
  })

  test('name the places of those that were told, with one that was told at once, and without one that came too late', () => {
    const store = open<KeyValueStore<unknown, Waiting>>(spec, new MemoryBackend())
    const memory = open<WindowStore<unknown, unknown>>(
      specOf({
        ...{ kind: 'window', windowSizeMs: 10, retentionMs: 100, retainDuplicates: true, timestamped: false },
        ...{ keySerde: serdes.string as StoreSpec['keySerde'], valueSerde: serdes.string as StoreSpec['valueSerde'] },
      }),
      new MemoryBackend(),
    )
    const records = new WaitingRecords(store, serdes.string, (timestamp) => timestamp + 10)
    records.remembers('left', memory)
    records.init()
    const recOf = (value: string): Rec => new Rec('k', value, 5, [], undefined as never, undefined, undefined)
    memory.put('k', 'late already', 5)
    for (const value of ['a', 'b']) {
      records.add(recOf(value), true)
      memory.put('k', value, 5)
    }
    records.takeDue(15)
    memory.put('k', 'late', 5)
    assert.ok(records.addToTold(recOf('c'), true))
    memory.put('k', 'c', 5)
    records.matched('k', 5, true)
    assert.deepEqual(records.toldOf('k', 5, true), [1, 2, 4])
    assert.deepEqual(records.toldOf('k', 5, false), [])
  })
})
