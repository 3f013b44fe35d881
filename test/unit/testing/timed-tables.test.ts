/** Tables with a function for event time: a record without a value deletes its row, at its own timestamp. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp, type KeyValueStore, keyValueStore, serdes, type Topology, tumbling } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

interface Price {
  readonly from: number
}

const types = { key: serdes.string, value: serdes.json<Price>() }
/** As its type allows, it is not ready for null. */
const timed = { ...types, timestamp: ({ from }: Price): number => from }
const text = { key: serdes.string, value: serdes.json<Price | null>() }

type Config = Readonly<Record<string, unknown>>

function driverOf(build: (topology: Topology) => void, config: Config = {}): TopologyTestDriver {
  return new TopologyTestDriver(defineApp({ applicationId: 'timed', config, build }))
}

const told = (driver: TopologyTestDriver): unknown[] =>
  driver
    .output('out', { key: serdes.string, value: serdes.json() })
    .readAll()
    .map(({ key, value, timestamp }) => [key, value, timestamp])

describe('a table with a timestamp function', () => {
  const configs: Readonly<Record<string, Config>> = {
    'where a failure ends the application': {},
    'where what fails is skipped': { 'errors.processing': 'skip' },
    'where what fails becomes a dead letter': { 'errors.processing': 'dead-letter' },
    'whose topic might be its changelog': { 'topology.optimization': 'all' },
  }
  for (const [name, config] of Object.entries(configs)) {
    test(`deletes a row at the record's own timestamp, ${name}`, async () => {
      const driver = driverOf((topology) => {
        topology
          .table('prices', { ...timed, store: 'kept' })
          .toStream()
          .to('out')
      }, config)
      const prices = driver.input('prices', text)
      await prices.pipe('tea', { from: 5 }, { timestamp: 1000 })
      await prices.pipe('milk', { from: 6 }, { timestamp: 1001 })
      await prices.pipe('tea', null, { timestamp: 2000 })
      const rows = (): unknown => [...driver.store<KeyValueStore<string, unknown>>('kept').all()].map(([key]) => key)
      assert.deepEqual(told(driver), [
        ['tea', { from: 5 }, 5],
        ['milk', { from: 6 }, 6],
        ['tea', null, 2000],
      ])
      assert.deepEqual(driver.dropped(), [])
      assert.deepEqual(rows(), ['milk'])
      await driver.restart()
      assert.deepEqual(rows(), ['milk'], 'it is restored without the row')
      await prices.pipe('milk', null, { timestamp: 3000 })
      assert.deepEqual(rows(), [])
      driver.close()
    })
  }

  test('has one time for a deletion, which the watermark and the windows behind it go by', async () => {
    const driver = driverOf((topology) => {
      topology
        .table('prices', timed)
        .toStream()
        .mapValues((price) => price ?? 'none')
        .groupByKey()
        .windowedBy(tumbling('10s', { grace: 0 }))
        .count()
        .toStream()
        .selectKey((_, { start }) => String(start))
        .to('out', { key: serdes.string, value: serdes.json() })
    })
    const prices = driver.input('prices', text)
    await prices.pipe('tea', { from: 1000 }, { timestamp: 900_000 })
    await prices.pipe('tea', null, { timestamp: 50_000 })
    assert.deepEqual(
      told(driver).map((row) => (row as unknown[])[0]),
      ['0', '50000'],
      'it is in the window of its own timestamp',
    )
    await prices.pipe('milk', { from: 2000 }, { timestamp: 900_001 })
    await prices.pipe('milk', null, { timestamp: 3000 })
    assert.deepEqual(
      driver.dropped().map(({ reason }) => reason),
      ['late', 'late'],
      'the deletion took the watermark along, and another one is late for it',
    )
    driver.close()
  })

  test('deletes a row of a global table, and of a global store, too', async () => {
    const driver = driverOf((topology) => {
      const names = topology.globalTable('names', { ...timed, store: 'names' })
      topology.globalStore('rates', keyValueStore('rates', types), timed)
      topology
        .stream('asks', { key: serdes.string, value: serdes.string })
        .leftJoin(names, (_, name) => name?.from ?? null, { on: (ask) => ask })
        .processValues<unknown>(
          (context) => (name) =>
            context.forward([name, context.store<KeyValueStore<string, Price>>('rates').get('tea')?.from ?? null]),
          { globalStores: ['rates'] },
        )
        .to('out', { key: serdes.string, value: serdes.json() })
    })
    const asks = driver.input('asks', { key: serdes.string, value: serdes.string })
    for (const [topic, n] of [
      ['names', 5],
      ['rates', 6],
    ] as const) {
      await driver.input(topic, text).pipe('tea', { from: n }, { timestamp: 1000 })
    }
    await asks.pipe('a', 'tea', { timestamp: 2000 })
    for (const topic of ['names', 'rates']) await driver.input(topic, text).pipe('tea', null, { timestamp: 3000 })
    await asks.pipe('b', 'tea', { timestamp: 4000 })
    assert.deepEqual(
      told(driver).map((row) => (row as unknown[]).slice(0, 2)),
      [
        ['a', [5, 6]],
        ['b', [null, null]],
      ],
    )
    driver.close()
  })

  test('is no stream: the function of a stream is given null where a record has no value', async () => {
    const driver = driverOf((topology) => {
      topology
        .stream('prices', { ...types, tombstones: true, timestamp: (price) => price?.from ?? 7 })
        .mapValues(() => 'a price')
        .to('out', { key: serdes.string, value: serdes.json() })
    })
    await driver.input('prices', text).pipe('tea', null, { timestamp: 1000 })
    assert.deepEqual(told(driver), [['tea', 'a price', 7]])
    driver.close()
  })
})
