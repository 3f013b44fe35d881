/** One key's records one after the other, also where another key's record, or time, lets them go on; and timers of one instant. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, test } from 'node:test'
import { Random } from '../../../src/base/random.ts'
import { defineApp, type Serde, serdes, type Stream, type Topology } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

interface Order {
  readonly i: number
  readonly group: string
}

const number = { key: serdes.string, value: serdes.json<number>() }
const order = { key: serdes.string, value: serdes.json<Order>() }

const driverOf = (build: (topology: Topology) => void): TopologyTestDriver =>
  new TopologyTestDriver(defineApp({ applicationId: 'test', build }))

/** By key: the last value told, and how many were. */
function told(driver: TopologyTestDriver, topic: string): Record<string, readonly [last: number, times: number]> {
  const all: Record<string, readonly [number, number]> = {}
  for (const { key, value } of driver.output<string, number>(topic, number).readAll())
    all[key as string] = [value as number, (all[key as string]?.[1] ?? 0) + 1]
  return all
}

/** Each adds one to what it finds, a while later. */
function counted(stream: Stream<string, unknown>): void {
  stream
    .groupByKey()
    .aggregate<number>(
      () => 0,
      async (sum) => {
        await sleep((sum % 3) * 2)
        return sum + 1
      },
      { store: { name: 'counts', value: serdes.count } },
    )
    .toStream()
    .to('out', number)
}

describe('an asynchronous function', () => {
  test('below a table that is held back has a key once at a time, whoever let it out', async () => {
    const driver = driverOf((topology) =>
      counted(topology.table('in', number).suppress({ until: '1h', maxRecords: 2 }).toStream()),
    )
    const random = new Random(5)
    const records = Array.from({ length: 300 }, (_, i) => ({ key: `k${random.int(6)}`, value: i, timestamp: i }))
    await driver.input('in').pipeAll(records)
    for (const [key, [last, times]] of Object.entries(told(driver, 'out'))) assert.equal(last, times, key)
  })

  test('has a key once at a time where a part of the topology feeds itself, also with what time let out', async () => {
    const driver = driverOf((topology) => {
      const left = topology.stream('left', order)
      const pairs = left.leftJoin(topology.stream('right', order), ({ i }, other) => ({ i, other: other?.i ?? null }), {
        within: '3ms',
      })
      const groups = left.groupBy(({ group }) => group, { key: serdes.string }).count()
      counted(pairs.leftJoin(groups, (pair) => pair))
    })
    const random = new Random(5)
    const records = Array.from({ length: 200 }, (_, i) => ({
      topic: random.pick(['left', 'right']),
      key: `k${random.int(2)}`,
      value: { i, group: `k${random.int(2)}` },
      timestamp: i,
    }))
    const end = ['left', 'right'].map((topic) => ({
      topic,
      key: 'end',
      value: { i: -1, group: 'end' },
      timestamp: 1e6,
    }))
    await driver.pipeAll([...records, ...end])
    const all = told(driver, 'out')
    assert.deepEqual(Object.keys(all).sort(), ['end', 'k0', 'k1'])
    for (const [key, [last, times]] of Object.entries(all)) assert.equal(last, times, key)
  })

  test('behind a table that is held back finds the value before it in a join of the table with itself', async () => {
    const results: string[][] = []
    for (const isAsync of [false, true]) {
      const driver = driverOf((topology) => {
        const held = topology.table('in', number).suppress({ until: '10ms' })
        const times10 = held.mapValues((value) => (isAsync ? sleep(2, value * 10) : value * 10))
        times10
          .outerJoin(held, (left, right) => `${left}+${right}`)
          .toStream()
          .to('out', { key: serdes.string, value: serdes.json<string>() })
      })
      for (const [i, timestamp] of [0, 30, 60, 90].entries()) await driver.input('in').pipe('a', i + 1, { timestamp })
      for (const timestamp of [200, 400]) await driver.input('in').pipe('z', 1, { timestamp })
      results.push(
        driver
          .output('out')
          .readAll()
          .map(({ key, value }) => `${key} ${value}`),
      )
    }
    assert.deepEqual(results[1], results[0])
  })
})

describe('timers of one instant', () => {
  const timed = (topology: Topology, other: 'delete' | 'move'): void => {
    topology
      .stream('in', number)
      .process<string, number>(
        (context) => ({
          process: (at, key) => context.timers.set(key, at),
          onTimer: (key, at) => {
            if (key === 'a' && other === 'delete') context.timers.delete('b')
            if (key === 'a' && other === 'move') context.timers.set('b', 500)
            return context.forward(key, at)
          },
        }),
        { timers: true },
      )
      .to('out', number)
  }

  for (const [other, restarts, expected] of [
    ['delete', false, ['a 100']],
    ['move', false, ['a 100', 'b 500']],
    ['move', true, ['a 100', 'b 500']],
  ] as const)
    test(`${other} one another${restarts ? ', over a restart' : ''}`, async () => {
      const driver = driverOf((topology) => timed(topology, other))
      const input = driver.input('in')
      await input.pipe('a', 100, { timestamp: 0 })
      await input.pipe('b', 100, { timestamp: 0 })
      await input.pipe('z', 10_000, { timestamp: 200 })
      if (restarts) await driver.restart()
      await input.pipe('z', 10_000, { timestamp: 600 })
      assert.deepEqual(
        driver
          .output('out')
          .readAll()
          .map(({ key, value }) => `${key} ${value}`),
        expected,
      )
    })

  test('are those of the keys as they are written, whatever these are', async () => {
    const fired: unknown[] = []
    const build = (key: Serde<unknown>, keysOf: (value: number) => unknown) => (topology: Topology) => {
      topology.stream<unknown, number>('in', { key, value: serdes.json<number>() }).process<unknown, number>(
        (context) => ({
          process: (at) => context.timers.set(keysOf(at), at),
          onTimer: (_, at) => {
            fired.push(at)
          },
        }),
        { timers: true },
      )
    }
    const other = 1_000_000
    for (const [serde, keysOf] of [
      [serdes.int64, (at: number) => (at === other ? 6n : 5n)],
      [serdes.bytes, (at: number) => (at === 300 ? new Uint8Array([107]) : Buffer.from(at === other ? 'z' : 'k'))],
    ] as const) {
      fired.length = 0
      const input = driverOf(build(serde as Serde<unknown>, keysOf)).input<unknown, number>('in')
      await input.pipe(keysOf(100), 100, { timestamp: 0 })
      await input.pipe(keysOf(300), 300, { timestamp: 10 })
      await input.pipe(keysOf(other), other, { timestamp: 200 })
      assert.deepEqual(fired, [])
      await input.pipe(keysOf(other), other, { timestamp: 400 })
      assert.deepEqual(fired, [300])
    }
  })
})
