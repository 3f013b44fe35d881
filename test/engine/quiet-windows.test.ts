/** Windows that close while nothing comes wait for what is held back on the way to them, and for nothing else. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  defineApp,
  type Duration,
  serdes,
  type Stream,
  type Topology,
  tumbling,
  type Windowed,
} from '../../src/index.ts'
import { TopologyTestDriver } from '../../src/testing/index.ts'

const numbers = { key: serdes.string, value: serdes.json<number>() }

const driverOf = (build: (topology: Topology) => void): TopologyTestDriver =>
  new TopologyTestDriver(defineApp({ applicationId: 'test', build }))

const values = (driver: TopologyTestDriver): unknown[] =>
  driver
    .output('out')
    .readAll()
    .map((record) => record.value)

describe('windows that close in quiet', () => {
  // In their task each of the first windows is a key of its own.
  for (const [how, told] of [
    ['in their task', [3, 1]],
    ['behind a change of key', [4]],
  ] as const) {
    test(`windows that would close sooner than those before them wait for these, ${how}`, async () => {
      const driver = driverOf((topology) => {
        const first = topology
          .stream('in')
          .groupByKey()
          .windowedBy(tumbling('1s', { closeAfterIdle: '30s' }), { emit: 'on-close' })
          .count()
        const counts = how === 'in their task' ? first.toStream() : first.toStream({ key: () => 'all' })
        counts
          .groupByKey()
          .windowedBy(tumbling('10s', { closeAfterIdle: '1s' }), { emit: 'on-close' })
          .reduce((sum: number, count: number) => sum + count)
          .toStream()
          .to('out')
      })
      // The last one closes the first window, and its own stays open while nothing comes.
      for (const timestamp of [0, 100, 200, 1500]) await driver.input('in').pipe('a', 1, { timestamp })
      await driver.advanceWallClock('1m')
      assert.deepEqual(values(driver), told)
      assert.deepEqual(driver.dropped(), [])
    })
  }

  const soon = (stream: Stream<string, number | null>): void =>
    stream
      .groupByKey()
      .windowedBy(tumbling('10s', { closeAfterIdle: '1s' }), { emit: 'on-close' })
      .count()
      .toStream()
      .to('out')
  const aDay = tumbling('1d', { closeAfterIdle: '1h' })

  for (const [what, build] of [
    [
      'a join whose records have found their partners',
      (topology) =>
        soon(
          topology
            .stream('in', numbers)
            .leftJoin(topology.stream('other', numbers), (a, b) => (b === null ? 1000 : a), { within: '1s' }),
        ),
    ],
    [
      'timers that were taken back',
      (topology) =>
        soon(
          topology.stream('in', numbers).process(
            (context) => ({
              process: (value, key, { timestamp }) => {
                context.timers.set(key, timestamp + 1000)
                context.timers.delete(key)
                return context.forward(key, value)
              },
            }),
            { timers: true, ...numbers },
          ),
        ),
    ],
    [
      'windows beside them that feed others',
      (topology) => {
        const input = topology.stream('in', numbers)
        input.groupByKey().windowedBy(aDay, { emit: 'on-close' }).count().toStream().to('days')
        soon(input.selectKey(() => 'all').repartition(numbers))
      },
    ],
    [
      'windows that tell them nothing',
      (topology) => {
        const input = topology.stream('in', numbers)
        const hours = tumbling('1h', { closeAfterIdle: '30s' })
        const none = input
          .groupByKey()
          .windowedBy(hours, { emit: 'on-close' })
          .count()
          .toStream({ key: () => '' })
        soon(
          input
            .merge(none.filter(() => false))
            .selectKey(() => 'all')
            .repartition(numbers),
        )
      },
    ],
  ] as ReadonlyArray<readonly [string, (topology: Topology) => void]>) {
    test(`they close behind ${what}`, async () => {
      const driver = driverOf(build)
      if (what.startsWith('a join')) await driver.input('other').pipe('a', 1, { timestamp: 3_599_110 })
      // A second before the hour is over.
      await driver.input('in').pipe('a', 1, { timestamp: 3_599_100 })
      await driver.advanceWallClock('2m')
      assert.deepEqual(values(driver), [1])
    })
  }

  // What is held back is let go by event time alone: by the next record, however long that takes to come.
  for (const [what, held] of [
    ['rows of a table that are suppressed', (input) => input.toTable().suppress({ until: '5s' }).toStream()],
    [
      'rows of an outer join without a partner',
      (input, topology) => input.leftJoin(topology.stream('other', numbers), (a) => a, { within: '4s' }),
    ],
    [
      'records that wait for a table',
      (input, topology) => {
        const store = { type: 'versioned', historyRetention: '1m' } as const
        return input.leftJoin(topology.table('other', { ...numbers, store }), (a) => a, { grace: '5s' })
      },
    ],
    [
      'timers that are not due',
      (input) =>
        input.process(
          (context) => ({
            process: (_value, key, { timestamp }) => context.timers.set(key, timestamp + 5000),
            onTimer: (key) => context.forward(key, 2),
          }),
          { timers: true, ...numbers },
        ),
    ],
  ] as ReadonlyArray<
    readonly [string, (input: Stream<string, number>, topology: Topology) => Stream<string, number>]
  >) {
    test(`they wait for ${what}`, async () => {
      const driver = driverOf((topology) => {
        const input = topology.stream('in', numbers)
        const later = held(
          input.filter((value) => value === 2),
          topology,
        )
        soon(later.merge(input.filter((value) => value === 1)))
      })
      // The other side is there, for other keys.
      const other = async (timestamp: number): Promise<void> => {
        if (/join|a table$/.test(what)) await driver.input('other').pipe('z', 1, { timestamp })
      }
      await other(0)
      for (const value of [1, 2]) await driver.input('in').pipe('a', value, { timestamp: 0 })
      await driver.advanceWallClock('10m')
      assert.deepEqual(values(driver), [])
      await other(7000)
      await driver.input('in').pipe('a', 1, { timestamp: 7000 })
      await driver.advanceWallClock('1m')
      assert.deepEqual(values(driver), [3])
      assert.deepEqual(driver.dropped(), [])
    })
  }

  const aSecond = (stream: Stream<string, number>, closeAfterIdle: Duration) =>
    stream.groupByKey(numbers).windowedBy(tumbling('1s', { closeAfterIdle }), { emit: 'on-close' }).count().toStream()
  const byKey = (counts: Stream<Windowed<string>, number>): Stream<string, number> =>
    counts.map((count, { key }) => [key, count])
  const summed = (stream: Stream<string, number | null>): void =>
    stream
      .mapValues((count) => count ?? 0)
      .groupByKey(numbers)
      .windowedBy(tumbling('10s', { closeAfterIdle: '1s' }), { emit: 'on-close' })
      .reduce((sum, count) => sum + count)
      .toStream()
      .to('out')

  for (const [how, build] of [
    [
      'by way of a foreign-key join, of its left side',
      (topology, first) =>
        summed(
          first
            .repartition(numbers)
            .toTable()
            .join(topology.table('other', numbers), (count) => count, { on: () => 'r' })
            .toStream(),
        ),
    ],
    [
      'by way of a foreign-key join, of its right side',
      (topology, first) =>
        summed(
          topology
            .table('other', numbers)
            .join(first.repartition(numbers).toTable(), (_, count) => count, { on: () => 'a' })
            .toStream(),
        ),
    ],
    [
      'in a sub-topology that feeds itself',
      (topology, first) =>
        summed(
          topology
            .stream('in', numbers)
            .filter(() => false)
            .merge(first.repartition(numbers)),
        ),
    ],
  ] as ReadonlyArray<readonly [string, (topology: Topology, first: Stream<string, number>) => void]>) {
    test(`they wait for windows whose results come ${how}`, async () => {
      const driver = driverOf((topology) => build(topology, byKey(aSecond(topology.stream('in', numbers), '30s'))))
      if (how.includes('join')) await driver.input('other').pipe('r', 1, { timestamp: 5000 })
      for (const timestamp of [0, 100, 200, 1500]) await driver.input('in').pipe('a', 1, { timestamp })
      await driver.advanceWallClock('2m')
      assert.deepEqual(values(driver), [4])
      assert.deepEqual(driver.dropped(), [])
    })
  }

  test('they wait for what windows in an earlier stage of their task have yet to tell', async () => {
    const keyed = { key: serdes.windowed(serdes.string, 1000), value: serdes.json<number>() }
    const driver = driverOf((topology) => {
      const input = topology.stream('in', numbers)
      // What comes by way of a change of key makes it two stages.
      const beside = input.filter(() => false).map((n, key) => [{ key, start: 0, end: 1000 }, n])
      aSecond(input, '30s')
        .merge(beside.repartition(keyed))
        .groupByKey(keyed)
        .windowedBy(tumbling('10s', { closeAfterIdle: '1s' }), { emit: 'on-close' })
        .reduce((sum, count) => sum + count)
        .toStream()
        .to('out')
    })
    for (const timestamp of [0, 100, 200, 1500]) await driver.input('in').pipe('a', 1, { timestamp })
    await driver.advanceWallClock('2m')
    assert.deepEqual(values(driver), [3, 1])
    assert.deepEqual(driver.dropped(), [])
  })

  // Looks come five seconds apart: those of 36 s meet the end of the first windows to the millisecond.
  for (const idle of ['31s', '36s'] as const) {
    test(`they wait for what is told at the very moment at which they look: ${idle}`, async () => {
      const driver = driverOf((topology) =>
        summed(byKey(aSecond(topology.stream('in', numbers), idle)).map((count) => ['all', count])),
      )
      for (const timestamp of [1000, 1100, 5000])
        for (const key of ['a', 'b', 'c']) await driver.input('in').pipe(key, 1, { timestamp })
      await driver.advanceWallClock('2m')
      assert.deepEqual(values(driver), [9])
      assert.deepEqual(driver.dropped(), [])
    })
  }
})
