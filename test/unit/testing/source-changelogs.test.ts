/** With `topology.optimization: all` a table comes back from its topic as processing had made it, whatever lies in the topic. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp, type KeyValueStore, serdes, type Table, type Topology } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

interface Row {
  readonly x: number
  readonly t?: number
}

type Rows = Table<string, Row>

/** A record of the table's topic as text: key, value, broker's time. */
type Written = readonly [key: string, value: string, timestamp: number]

interface Case {
  readonly table: (topology: Topology) => Rows
  /** Of what is asked for: the key of events is JSON. */
  readonly asked?: unknown
  readonly written: readonly Written[]
  /** What else happens before the restart. */
  readonly before?: Written
  /** What the row is found to be. */
  readonly found: number | null
  readonly dropped?: string
}

const json = { key: serdes.json<string>(), value: serdes.json<Row>() }
const timed = { ...json, timestamp: (row: Row): number => row.t ?? 0 }
const good: Written = ['"k"', '{"x":1}', 1000]

const cases: Readonly<Record<string, Case>> = {
  'a record that could not be decoded leaves the row as it was': {
    table: (topology) => topology.table('rows', { ...json, store: 'kept' }),
    written: [good, ['"k"', '{bad', 1001]],
    found: 1,
    dropped: 'deserialize',
  },
  'a key that could not be decoded is no row': {
    table: (topology) => topology.table('rows', { ...json, store: 'kept' }),
    written: [good, ['{bad', '{"x":2}', 1001]],
    found: 1,
    dropped: 'deserialize',
  },
  'a record without a time is no row': {
    table: (topology) => topology.table('rows', { ...timed, store: 'kept' }),
    written: [
      ['"k"', '{"x":1,"t":5}', 1000],
      ['"k"', '{"x":2,"t":-5}', 1001],
    ],
    found: 1,
    dropped: 'negative_timestamp',
  },
  'a time to live counts from the time that the function said': {
    table: (topology) => topology.table('rows', { ...timed, store: { name: 'kept', ttl: '10s' } }),
    written: [['"k"', '{"x":1,"t":199000}', 1000]],
    found: 1,
  },
  'a value that means none deletes the row': {
    table: (topology) => topology.table('rows', { ...json, store: 'kept' }),
    written: [good, ['"k"', 'null', 1001]],
    found: null,
  },
  'a key is found however its producer wrote it': {
    table: (topology) => topology.table('rows', { ...json, store: 'kept' }) as unknown as Rows,
    asked: { a: 1 },
    written: [
      ['{"a":1}', '{"x":1}', 1000],
      ['{"a": 1}', '{"x":2}', 1001],
      ['{ "a": 1 }', '{bad', 1002],
    ],
    found: 2,
    dropped: 'deserialize',
  },
  'a version that came too late stays out': {
    table: (topology) =>
      topology.table('rows', { ...json, store: { name: 'kept', type: 'versioned', historyRetention: '10s' } }),
    written: [
      ['"k"', '{"x":1}', 100_000],
      ['"other"', '{"x":9}', 200_000],
    ],
    before: ['"k"', '{"x":5}', 120_000],
    found: 1,
    dropped: 'expired',
  },
}

function driverOf(table: Case['table'], optimization: 'none' | 'all'): TopologyTestDriver {
  const app = defineApp({
    applicationId: 'test',
    config: { 'topology.optimization': optimization, 'errors.decoding': 'skip' },
    build: (topology) =>
      topology
        .stream('asks', { key: json.key, value: serdes.json<number>() })
        .leftJoin(table(topology), (ask, row) => [ask, row?.x ?? null])
        .to('out', { key: json.key, value: serdes.json() }),
  })
  return new TopologyTestDriver(app)
}

const text = { key: serdes.string, value: serdes.string }

describe('a table whose topic is its changelog, after a restart', () => {
  for (const [name, { table, asked = 'k', written, before, found, dropped }] of Object.entries(cases)) {
    for (const optimization of ['none', 'all'] as const) {
      test(`${name}, optimization ${optimization}`, async () => {
        const driver = driverOf(table, optimization)
        const asks = driver.input('asks', { key: serdes.json(), value: serdes.json<number>() })
        const ask = async (n: number): Promise<unknown> => {
          await asks.pipe(asked, n, { timestamp: 200_000 + n })
          return driver.output('out').readAll().at(-1)?.value
        }
        const rows = driver.input('rows', text)
        for (const [key, value, timestamp] of written) await rows.pipe(key, value, { timestamp })
        if (before !== undefined) {
          await ask(0)
          await rows.pipe(before[0], before[1], { timestamp: before[2] })
        }
        assert.deepEqual(await ask(1), [1, found])
        assert.deepEqual(
          driver.dropped().map(({ reason }) => reason),
          dropped === undefined ? [] : [dropped],
        )
        // Stores of versions do not tell how many they have.
        const entries = (): number | undefined =>
          driver.store<Partial<KeyValueStore<string, Row>>>('kept').approximateEntries?.()
        const had = entries()
        await driver.restart()
        assert.deepEqual(await ask(2), [2, found])
        assert.equal(entries(), had)
        driver.close()
      })
    }
  }

  for (const optimization of ['none', 'all'] as const) {
    test(`tells what it joins at the time that the function said, optimization ${optimization}`, async () => {
      const app = defineApp({
        applicationId: 'test',
        config: { 'topology.optimization': optimization },
        build: (topology) =>
          topology
            .table('rows', { ...timed, store: 'kept' })
            .join(topology.table('others', { ...json, store: 'others' }), (a, b) => a.x + b.x)
            .toStream()
            .to('out'),
      })
      const driver = new TopologyTestDriver(app)
      await driver.input('rows', text).pipe('"k"', '{"x":1,"t":5}', { timestamp: 99_000 })
      await driver.restart()
      await driver.input('others', text).pipe('"k"', '{"x":10}', { timestamp: 12 })
      assert.deepEqual(
        driver
          .output('out')
          .readAll()
          .map(({ value, timestamp }) => [value, timestamp]),
        [[11, 12]],
      )
      driver.close()
    })
  }
})
