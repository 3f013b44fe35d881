/** The test driver does as a running engine does: event time over partitions, commits, restarts, errors, lanes. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  defineApp,
  type KeyValueStore,
  type Serde,
  serdes,
  type Topology,
  tumbling,
  type WindowStore,
  windowStore,
} from '../../../src/index.ts'
import { type DriverOptions, TopologyTestDriver } from '../../../src/testing/index.ts'

const driverOf = (build: (topology: Topology) => void, options?: DriverOptions): TopologyTestDriver =>
  new TopologyTestDriver(defineApp({ applicationId: 'test', build }), options)

const values = (driver: TopologyTestDriver, topic = 'out'): unknown[] =>
  driver
    .output(topic)
    .readAll()
    .map((record) => record.value)

const countedOnClose = (topology: Topology): void =>
  topology.stream('clicks').groupByKey().windowedBy(tumbling('10s'), { emit: 'on-close' }).count().toStream().to('out')

const summed = (topology: Topology): void =>
  topology
    .stream<string, number>('in', { value: serdes.json<number>() })
    .groupByKey()
    .reduce((a, b) => a + b, { store: 'sums' })
    .toStream()
    .to('out')

describe('event time', () => {
  const four = { topics: { clicks: { partitions: 4 } } }

  test('is held by partitions without a record, and the driver says which', async () => {
    const driver = driverOf(countedOnClose, four)
    for (const timestamp of [0, 5000, 60_000]) await driver.input('clicks').pipe('a', 1, { timestamp, partition: 2 })
    assert.deepEqual(values(driver), [])
    await driver.advanceWallClock('1d')
    assert.deepEqual(values(driver), [])
    const told = driver.explain()
    assert.match(told, /clicks:0, clicks:1, clicks:3 hold event time, without a record so far/)
    assert.match(told, /Set `watermark.idleness-timeout`/)
    assert.match(told, /holds 2 windows/)
  })

  test('goes on without silent partitions once they are idle', async () => {
    const driver = driverOf(countedOnClose, { ...four, config: { 'watermark.idleness-timeout': '30s' } })
    for (const timestamp of [0, 5000, 60_000]) await driver.input('clicks').pipe('a', 1, { timestamp, partition: 2 })
    assert.match(driver.explain(), /silent for 30000 ms: advanceWallClock\(30000\)/)
    await driver.advanceWallClock('29s')
    assert.deepEqual(values(driver), [])
    await driver.advanceWallClock('1s')
    assert.deepEqual(values(driver), [2])
  })

  test('is the least of all sources: what one has late is not late for the other', async () => {
    const driver = driverOf((topology) =>
      topology
        .stream('left')
        .merge(topology.stream('right'))
        .groupByKey()
        .windowedBy(tumbling('10s'))
        .count()
        .toStream()
        .to('out'),
    )
    await driver.input('left').pipe('a', 1, { timestamp: 100_000 })
    await driver.input('right').pipe('a', 1, { timestamp: 10_000 })
    assert.deepEqual(values(driver), [1, 1])
    assert.deepEqual(driver.dropped(), [])
    assert.match(driver.explain(), /right:0 is furthest behind; left:0 at/)
  })

  test('does not follow the wall clock, nor does that follow the records', async () => {
    const driver = driverOf(countedOnClose, { startAt: 5 })
    for (let i = 0; i < 50; i++) await driver.input('clicks').pipe('a', 1)
    assert.equal(driver.now(), 5)
    await driver.advanceWallClock('3650d')
    assert.equal(driver.now(), 5 + 3650 * 86_400_000)
    assert.deepEqual(values(driver), [])
    await driver.input('clicks').pipe('a', 1)
    assert.deepEqual(values(driver), [50])
  })
})

describe('commits', () => {
  test('come with each call, or as the engine makes them', async () => {
    const driver = driverOf(summed, { commits: 'interval', config: { 'commit-barrier.interval-ms': 1000 } })
    const { pipe } = driver.input('in')
    await pipe('a', 1)
    await driver.commit()
    assert.deepEqual(values(driver), [1])
    await pipe('a', 2)
    assert.deepEqual(values(driver), [])
    await driver.advanceWallClock('1s')
    assert.deepEqual(values(driver), [3])
  })

  test('wait no longer than it takes to work off what is there', async () => {
    const config = { 'commit-barrier.interval-ms': '9s', 'commit-barrier.idle-interval-ms': '1s' }
    const driver = driverOf(summed, { commits: 'interval', config })
    await driver.input('in').pipe('a', 1)
    await driver.commit()
    await driver.input('in').pipe('a', 2)
    await driver.advanceWallClock('2s')
    assert.deepEqual(values(driver), [1, 3])
  })

  test('come for what a timer tells, though nothing was read', async () => {
    const driver = driverOf(
      (topology) =>
        topology
          .stream('in')
          .process<string, string>((context) => {
            context.schedule('10s', 'wall-clock', (at) => context.forward('wall', `${at}`))
            return () => undefined
          })
          .to('out'),
      { commits: 'interval', config: { 'commit-barrier.interval-ms': '1s' } },
    )
    await driver.input('in').pipe('a', 'x')
    await driver.commit()
    await driver.advanceWallClock('25s')
    assert.deepEqual(values(driver), ['10000', '20000'])
  })

  test('are what a restart goes back to: what came after is done again, once', async () => {
    const driver = driverOf(summed, { commits: 'interval', config: { 'commit-barrier.interval-ms': '9s' } })
    const sums = driver.store<KeyValueStore<string, { value: number }>>('sums')
    const { pipe } = driver.input('in')
    await pipe('a', 1)
    await driver.commit()
    await pipe('a', 2)
    await pipe('b', 7)
    assert.equal(sums.get('a')?.value, 3)
    await driver.restart()
    assert.equal(sums.get('a')?.value, 3)
    assert.equal(sums.get('b')?.value, 7)
    await driver.commit()
    assert.deepEqual(values(driver), [1, 3, 7])
  })
})

describe('restarts', () => {
  for (const lanes of [1, 3]) {
    test(`restore stores, windows and event time, ${lanes} lanes`, async () => {
      const driver = driverOf(
        (topology) => {
          summed(topology)
          countedOnClose(topology)
        },
        { lanes, partitions: 3, config: { 'watermark.idleness-timeout': '1s' } },
      )
      for (const key of ['a', 'b', 'c', 'd']) {
        await driver.input('in').pipe(key, 1, { timestamp: 1 })
        await driver.input('clicks').pipe(key, 1, { timestamp: 1 })
      }
      await driver.restart()
      for (const key of ['a', 'b', 'c', 'd']) {
        await driver.input('in').pipe(key, 1, { timestamp: 20_000 })
        await driver.input('clicks').pipe(key, 1, { timestamp: 20_000 })
      }
      await driver.advanceWallClock('1s')
      assert.deepEqual(values(driver).sort(), [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2])
      assert.deepEqual(driver.dropped(), [])
    })
  }

  test('leave the times of the windows of a processor as they were given', async () => {
    const last = windowStore<string, string>('last', { retention: '1h', windowSize: '1m' })
    const driver = driverOf((topology) =>
      topology
        .stream<string, string>('in')
        .process(
          (context) =>
            (value, key, { timestamp }) =>
              context.store(last).put(key, value, 60_000, timestamp),
          {
            stores: [last],
          },
        )
        .to('none'),
    )
    const row = () => driver.store<WindowStore<string, string>>('last').fetch('a', 60_000)
    await driver.input('in').pipe('a', 'x', { timestamp: 61_234 })
    assert.deepEqual(row(), { value: 'x', timestamp: 61_234 })
    await driver.restart()
    assert.deepEqual(row(), { value: 'x', timestamp: 61_234 })
  })

  test('find global tables as they were', async () => {
    const driver = driverOf((topology) => {
      const names = topology.globalTable<string, string>('names')
      topology
        .stream<string, string>('in')
        .join(names, (value, name) => `${value} ${name}`, { on: (value) => value })
        .to('out')
    })
    await driver.input('names').pipe('x', 'eks')
    await driver.restart()
    await driver.input('names').pipe('y', 'ypsilon')
    await driver.input('in').pipe('k', 'x')
    await driver.input('in').pipe('k', 'y')
    assert.deepEqual(values(driver), ['x eks', 'y ypsilon'])
  })

  test('find versions of global tables as they were, in whatever order partitions are loaded', async () => {
    const hour = 3_600_000
    const driver = driverOf(
      (topology) => {
        const store = { name: 'rates', type: 'versioned', historyRetention: '1h' } as const
        const rates = topology.globalTable<string, string>('rates', { store })
        topology
          .stream<string, string>('in')
          .join(rates, (value, rate) => `${value} ${rate}`, { on: (_, key) => key })
          .to('out')
      },
      { topics: { rates: { partitions: 2 } } },
    )
    await driver.input('rates').pipe('old', 'one', { timestamp: hour, partition: 1 })
    await driver.input('rates').pipe('new', 'two', { timestamp: 11 * hour, partition: 0 })
    for (const value of ['before', 'after']) {
      await driver.input('in').pipe('old', value, { timestamp: 12 * hour })
      await driver.restart()
    }
    assert.deepEqual(values(driver), ['before one', 'after one'])
  })
})

describe('errors', () => {
  const strict = (topology: Topology): void =>
    topology
      .stream<string, number>('in', { value: serdes.json<number>() })
      .mapValues(
        (value) => {
          if (value < 0) throw new RangeError('negative')
          return value
        },
        { name: 'checked' },
      )
      .to('out')

  test('end the application, as its policy says, until it is started again', async () => {
    const driver = driverOf(strict)
    await driver.input('in').pipe('a', 1)
    await assert.rejects(driver.input('in').pipe('a', -1), { code: 'PROCESSING_FAILED' })
    await assert.rejects(driver.input('in').pipe('a', 2), /has failed and processes nothing any more .*restart\(\)/)
    await assert.rejects(driver.restart(), { code: 'PROCESSING_FAILED' })
    assert.deepEqual(values(driver), [1])
  })

  test('are skipped, or lie in the dead letters', async () => {
    const skipping = driverOf(strict, { config: { 'errors.processing': 'skip' } })
    const burying = driverOf(strict, { config: { 'errors.processing': 'dead-letter' } })
    for (const driver of [skipping, burying]) {
      for (const value of [1, -1, 2]) await driver.input('in').pipe('a', value)
      assert.deepEqual(values(driver), [1, 2])
      assert.deepEqual(
        driver.dropped().map(({ reason, node, value }) => [reason, node, value]),
        [['handler', 'checked', -1]],
      )
    }
    assert.deepEqual(skipping.output('test-dead-letters').readAll(), [])
    const [buried] = burying.output('test-dead-letters', { value: serdes.json() }).readAll()
    assert.equal(buried?.value, -1)
    assert.ok(buried.headers.some(([name]) => name.includes('error')))
  })
})

describe('a sink that chooses its topic', () => {
  const malformed = ['nothing', '', 'two words', '..', 'ä', 'a/b', 'x'.repeat(250), null, 7]

  test('goes on without a record whose topic has no name, as the policy says', async () => {
    const driver = driverOf(
      (topology) =>
        topology
          .stream<string, string>('in', { value: serdes.json<string>() })
          .to((value) => (value === 'nothing' ? (undefined as unknown as string) : value)),
      { config: { 'errors.producing': 'dead-letter' } },
    )
    const input = driver.input<string, unknown>('in', { value: serdes.json<unknown>() })
    for (const value of [...malformed.slice(0, 1), 'chosen', ...malformed.slice(1), 'chosen', 'x'.repeat(249)])
      await input.pipe('k', value)
    assert.deepEqual(values(driver, 'chosen'), ['chosen', 'chosen'])
    assert.equal(values(driver, 'x'.repeat(249)).length, 1)
    const letters = driver.output('test-dead-letters', { value: serdes.json<unknown>() }).readAll()
    assert.deepEqual(
      letters.map(({ value }) => value),
      malformed,
    )
  })
})

describe('values that nobody looks at', () => {
  for (const regroups of [false, true]) {
    test(`are counted, told from none, and lie whole in a dead letter ${regroups ? 'behind a re-key' : 'of a topic'}`, async () => {
      const driver = driverOf(
        (topology) => {
          const stream = topology.stream<string | null, string | null>('in', { tombstones: true })
          const grouped = regroups ? stream.selectKey((_, key) => key).groupByKey() : stream.groupByKey()
          grouped.count().toStream().to('out')
        },
        { config: { 'errors.dropped': 'dead-letter' }, lanes: 2 },
      )
      const input = driver.input<string | null, string | null>('in')
      for (const [key, value] of [
        ['a', 'first'],
        ['a', ''],
        ['a', null],
        [null, 'without a key'],
      ] as const)
        await input.pipe(key, value)
      assert.deepEqual(values(driver), [1, 2])
      const letters = driver.output('test-dead-letters').readAll()
      assert.deepEqual(
        letters.map(({ value }) => value),
        [null, 'without a key'],
      )
    })
  }
})

describe('a record that is only counted behind a re-key', () => {
  test('lies whole in a dead letter, with the key that it had there', async () => {
    const driver = driverOf(
      (topology) =>
        topology
          .stream<string, string>('in')
          .groupBy((value) => value.slice(0, 1))
          .windowedBy(tumbling('1s'))
          .count()
          .toStream()
          .to('out'),
      { config: { 'errors.dropped': 'dead-letter' }, lanes: 2 },
    )
    const input = driver.input<string, string>('in')
    await input.pipe('k', 'apple', { timestamp: 10_000 })
    await input.pipe('k', 'avocado', { timestamp: 0 })
    const letters = driver.output('test-dead-letters').readAll()
    assert.deepEqual(
      letters.map(({ key, value }) => [key, value]),
      [['a', 'avocado']],
    )
  })
})

describe('the rest of the engine', () => {
  test('hands over through topics where the configuration says so', async () => {
    const driver = driverOf(
      (topology) =>
        topology
          .stream<string, string>('in')
          .groupBy((value) => value)
          .count({ store: 'counts' })
          .toStream()
          .to('out'),
      { partitions: 2, config: { 'topology.sub-topology-split': 'repartition-topics' } },
    )
    for (const value of ['x', 'y', 'x']) await driver.input('in').pipe('k', value)
    assert.deepEqual(values(driver), [1, 1, 2])
  })

  test('finds topics of a pattern that come later', async () => {
    const driver = driverOf((topology) => topology.stream(/in-.*/).to('out'))
    await driver.input('in-1').pipe('a', 'first')
    await driver.input('in-2').pipe('a', 'second')
    await driver.input('in-1').pipe('a', 'third')
    assert.deepEqual(values(driver), ['first', 'second', 'third'])
  })

  test('reads what a pattern matches with its flags', async () => {
    const driver = driverOf((topology) => topology.stream(/IN-.*/i).to('out'))
    await driver.input('in-1').pipe('a', 'x')
    await driver.input('In-2').pipe('a', 'y')
    assert.deepEqual(values(driver), ['x', 'y'])
    assert.throws(() => driver.input('in'), { code: 'USAGE' })
  })

  test('shows every partition of a store behind a pattern', async () => {
    const build = (topology: Topology): void => {
      topology.stream(/in-.*/).groupByKey().windowedBy(tumbling('10s')).count({ store: 'counts' }).toStream().to('out')
    }
    for (const lanes of [1, 2]) {
      const driver = driverOf(build, { lanes, topics: { 'in-1': { partitions: 3 } } })
      for (const key of ['a', 'b', 'c', 'd', 'e']) await driver.input('in-1').pipe(key, 'x')
      const stores = [0, 1, 2].map((partition) => driver.store<WindowStore<string, number>>('counts', partition))
      assert.deepEqual(
        stores.flatMap((store) => [...store.all()].map(([key]) => key)).sort(),
        ['a', 'b', 'c', 'd', 'e'],
        `${lanes} lanes`,
      )
      assert.match(driver.explain(), /holds 5 windows/)
      assert.throws(() => driver.store('counts', 3), { code: 'USAGE' })
    }
    // Before the first record, where all topics have as many.
    assert.deepEqual([...driverOf(build, { partitions: 2 }).store<WindowStore<string, number>>('counts', 1).all()], [])
  })

  test('tells what timers are due when a function has come back for which records waited', async () => {
    const driver = driverOf((topology) => {
      const input = topology.stream<string, number>('in', { value: serdes.json<number>() })
      input.mapValues((value) => (value === 10 ? sleep(5).then(() => value) : value)).to('slow')
      input
        .process<string, string>(
          (context) => ({
            process: (_value, key, { timestamp }) => context.timers.set(key, timestamp + 5),
            onTimer: (key) => context.forward(key as string, 'due'),
          }),
          { timers: true },
        )
        .to('out')
    })
    const { pipe, pipeAll } = driver.input<string, number>('in')
    await pipe('first', 1, { timestamp: 1 })
    const records = [10, 20, 30, 100].map((timestamp) => ({ key: `at ${timestamp}`, value: timestamp, timestamp }))
    await pipeAll(records)
    assert.deepEqual(
      driver
        .output<string>('out')
        .readAll()
        .map(({ key }) => key),
      ['first', 'at 10', 'at 20', 'at 30'],
    )
  })

  test('does a backlog of several topics in the order of time', async () => {
    const driver = driverOf(
      (topology) => {
        const rates = topology.table<string, number>('rates', { value: serdes.json<number>() })
        topology
          .stream<string, number>('in', { value: serdes.json<number>() })
          .join(rates, (value, rate) => value * rate)
          .to('out')
      },
      { commits: 'interval' },
    )
    const rows = Array.from({ length: 5000 }, (_, i) => ({ key: 'a', value: i, timestamp: 2 * i }))
    await driver.input('rates').pipeAll(rows)
    await driver.input('in').pipeAll(rows.map((row) => ({ ...row, value: 1, timestamp: row.timestamp + 1 })))
    await driver.commit()
    assert.equal(values(driver).length, 5000)
  })

  test('takes a row from one group to the other where JSON shows no difference between them', async () => {
    const colours: Serde<Map<string, number>> = {
      name: 'colours',
      serialize: (map) => new TextEncoder().encode([...map.keys()].join()),
      deserialize: (bytes) => new Map([[new TextDecoder().decode(bytes), 1]]),
    }
    const driver = driverOf((topology) =>
      topology
        .table<string, string>('in', { key: serdes.string, value: serdes.string })
        .groupBy((colour) => [new Map([[colour, 1]]), colour], { key: colours })
        .count()
        .toStream()
        .map((count, group) => [[...group.keys()].join(), count])
        .to('out', { key: serdes.string, value: serdes.json<number>() }),
    )
    await driver.input('in').pipeAll([
      { key: 'a', value: 'red', timestamp: 1 },
      { key: 'a', value: 'blue', timestamp: 2 },
    ])
    const told = driver.output<number>('out').readAll()
    assert.deepEqual(
      told.map(({ key, value }) => [key, value]),
      [
        ['red', 1],
        ['red', 0],
        ['blue', 1],
      ],
    )
  })

  test('is compared with a readable difference', async () => {
    const driver = driverOf(countedOnClose, { partitions: 2 })
    await driver.input('clicks').pipe('a', 1, { timestamp: 1, partition: 0 })
    const expect = (): void => driver.output('out').expect([{ value: 1 }])
    assert.throws(expect, (error: Error) => {
      assert.match(error.message, /The topic out has other records than expected/)
      assert.match(error.message, /clicks:1 holds event time/)
      return true
    })
    await driver.input('clicks').pipe('a', 1, { timestamp: 60_000, partition: 0 })
    await driver.input('clicks').pipe('b', 1, { timestamp: 60_000, partition: 1 })
    driver.output('out').expect([{ value: 1, partition: 0 }])
  })
})
