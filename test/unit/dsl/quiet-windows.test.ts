/** Windows that close while nothing comes wait for what is held back on the way to them, and for nothing else. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp, serdes, type Stream, type Topology, tumbling } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

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

  const soon = (stream: Stream<string, number>): void =>
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
    test(`windows close in quiet behind ${what}`, async () => {
      const driver = driverOf(build)
      if (what.startsWith('a join')) await driver.input('other').pipe('a', 1, { timestamp: 3_599_110 })
      // A second before the hour is over.
      await driver.input('in').pipe('a', 1, { timestamp: 3_599_100 })
      await driver.advanceWallClock('2m')
      assert.deepEqual(values(driver), [1])
    })
  }
})
