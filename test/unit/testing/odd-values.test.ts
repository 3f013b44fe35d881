/** What functions give of data from outside that is not as its type says: refused with a sentence, and nobody else suffers. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp, type GroupedStream, serdes, type Stream, type Topology } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

const skip = { config: { 'errors.processing': 'skip', 'errors.producing': 'skip' } } as const
const numbers = { key: serdes.string, value: serdes.json<number>() }

describe('odd values', () => {
  const counted: Readonly<Record<string, (stream: Stream<string, number>) => GroupedStream<string, number>>> = {
    'as it comes': (stream) => stream.groupByKey(),
    read: (stream) => stream.filter(() => true).groupByKey(),
    'by another key': (stream) => stream.selectKey((_, key) => `${key}!`).groupByKey(numbers),
    'read, by another key': (stream) => stream.filter(() => true).groupBy((_, key) => `${key}!`, numbers),
  }
  for (const [way, group] of Object.entries(counted)) {
    test(`a stream counted ${way} has no value where its JSON is null`, async () => {
      const app = defineApp({
        applicationId: 'nulls',
        build: (topology) => group(topology.stream('in', numbers)).count().toStream().to('out'),
      })
      const driver = new TopologyTestDriver(app)
      const bytes = driver.input('in', { key: serdes.string, value: serdes.bytes })
      for (const text of ['1', 'null', '"null"', '2']) await bytes.pipe('k', Buffer.from(text))
      const told = driver.output('out').readAll()
      assert.deepEqual(
        told.map(({ value }) => value),
        [1, 2, 3],
      )
      assert.equal(driver.dropped().length, 1)
      driver.close()
    })
  }

  for (const odd of [Number.NaN, Infinity, -Infinity]) {
    const build = (topology: Topology): void => {
      topology
        .stream('in', { key: serdes.string, value: serdes.json<number | 'odd'>() })
        .process<string, number>(
          (context) => ({
            process: (at, key) => context.timers.set(key, at === 'odd' ? odd : at),
            onTimer: (key, at) => void context.forward(key, at),
          }),
          { timers: true },
        )
        .to('out')
    }

    test(`a timer for ${odd} is refused, and those of other keys fire`, async () => {
      const driver = new TopologyTestDriver(defineApp({ applicationId: 'timers', build }), skip)
      const input = driver.input<string, number | 'odd'>('in')
      const at = { timestamp: 1000 }
      for (const [key, due] of Object.entries({ a: 5000, b: 3000, odd: 'odd', c: 4000, d: 2000, e: 6000, f: 2500 }))
        await input.pipe(key, due as number | 'odd', at)
      await input.pipe('last', 1e6, { timestamp: 100_000 })
      const fired = driver.output<string, number>('out').readAll()
      assert.deepEqual(fired.map(({ key }) => key).sort(), ['a', 'b', 'c', 'd', 'e', 'f'])
      assert.equal(driver.dropped().length, 1)
      driver.close()
    })

    test(`an aggregate that becomes ${odd} stays as it was, and does not go away`, async () => {
      const app = defineApp({
        applicationId: 'sums',
        build: (topology) =>
          topology
            .stream('in', { key: serdes.string, value: serdes.json<number | 'odd'>() })
            .groupByKey()
            .aggregate(
              () => 0,
              (sum, n) => sum + (n === 'odd' ? odd : n),
            )
            .toStream()
            .to('out'),
      })
      const driver = new TopologyTestDriver(app, skip)
      for (const n of [5, 'odd', 2] as const) await driver.input<string, number | 'odd'>('in').pipe('k', n)
      assert.deepEqual(
        driver
          .output('out')
          .readAll()
          .map(({ value }) => value),
        [5, 7],
      )
      driver.close()
    })
  }

  for (const behind of ['a topic', 'a re-key'])
    test(`a header that is no text is refused where it is given, in front of ${behind}`, async () => {
      const app = defineApp({
        applicationId: 'headers',
        build(topology) {
          const marked = topology.stream('in', numbers).processValues<number>(
            (context) => (n) =>
              context.forward(n, {
                headers: [
                  ['n', (n === 2 ? n : `${n}`) as string],
                  ['s', 'x'],
                ],
              }),
          )
          if (behind === 'a topic') marked.to('out')
          else marked.repartition(numbers).to('out')
        },
      })
      const driver = new TopologyTestDriver(app, skip)
      for (const n of [1, 2, 3]) await driver.input<string, number>('in').pipe('k', n)
      const read = driver.output('out').readAll()
      assert.deepEqual(
        read.map(({ value, headers }) => [value, headers]),
        [1, 3].map((n) => [
          n,
          [
            ['n', `${n}`],
            ['s', 'x'],
          ],
        ]),
      )
      assert.equal(driver.dropped().length, 1)
      driver.close()
    })
})
