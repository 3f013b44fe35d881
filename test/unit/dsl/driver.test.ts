import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, test } from 'node:test'
import {
  defineApp,
  EngineError,
  keyValueStore,
  type KeyValueStore,
  serdes,
  type Topology,
  tumbling,
  unlimited,
  type Windowed,
} from '../../../src/index.ts'
import { Random } from '../../../src/base/random.ts'
import { type DriverOptions, TopologyTestDriver } from '../../../src/testing/index.ts'

const driverOf = (build: (topology: Topology) => void, options?: DriverOptions): TopologyTestDriver =>
  new TopologyTestDriver(defineApp({ applicationId: 'test', build }), options)

const values = (driver: TopologyTestDriver, topic = 'out'): unknown[] =>
  driver
    .output(topic)
    .readAll()
    .map((record) => record.value)

describe('asynchronous functions', () => {
  const later = async <T>(value: T): Promise<T> => {
    await delay(1)
    return value
  }

  test('may stand in every operator', async () => {
    const driver = driverOf((topology) => {
      const table = topology.table<string, number>('table', { value: serdes.json<number>() })
      topology
        .stream('in', { value: serdes.json<number>() })
        .filter((value) => later(value > 0))
        .mapValues((value) => later(value * 2))
        .flatMapValues((value) => later([value, value + 1]))
        .peek(() => later(0))
        .map((value, key) => later([key, value] as const))
        .leftJoin(table, (left, right) => later(left + (right ?? 0)))
        .groupByKey()
        .windowedBy(tumbling(100))
        .aggregate(
          () => 0,
          (sum, value) => later(sum + value),
        )
        .filter((sum) => later(sum > 10))
        .toStream()
        .to('out')
    })
    await driver.input('table').pipe('a', 100, { timestamp: 0 })
    await driver.input('in').pipe('a', -1, { timestamp: 1 })
    await driver.input('in').pipe('a', 5, { timestamp: 2 })
    await driver.input('in').pipe('a', 1, { timestamp: 3 })
    assert.deepEqual(values(driver), [110, 221, 323, 426])
  })

  test('that fail are told with the operator and the record', async () => {
    const driver = driverOf((topology) =>
      topology
        .stream('in')
        .peek(async () => Promise.reject(new EngineFault('no')), { name: 'checked' })
        .to('out'),
    )
    await assert.rejects(
      driver.input('in').pipe('a', 1, { timestamp: 1 }),
      (error) =>
        EngineError.is(error) &&
        error.code === 'PROCESSING_FAILED' &&
        error.details.node === 'checked' &&
        error.details.offset === 0,
    )
  })
})

class EngineFault extends Error {
  override readonly name = 'EngineFault'
}

describe('errors', () => {
  test('of a function name the operator and the record, once', async () => {
    const driver = driverOf((topology) =>
      topology
        .stream('in')
        .mapValues((value) => (value as { a: { b: number } }).a.b, { name: 'reader' })
        .to('out'),
    )
    await assert.rejects(driver.input('in').pipe('a', {}, { timestamp: 1 }), (error) => {
      assert.ok(EngineError.is(error))
      assert.equal(error.code, 'PROCESSING_FAILED')
      assert.deepEqual(
        [error.details.node, error.details.topic, error.details.partition, error.details.offset],
        ['reader', 'in', 0, 0],
      )
      assert.match(error.message, /^A function of reader failed on the record in\/0 at offset 0: Cannot read/)
      return true
    })
  })

  test('of a serde are those of decoding and of producing', async () => {
    const decoding = driverOf((topology) =>
      topology
        .stream('in', { value: serdes.int32 })
        .peek(() => 0)
        .to('out'),
    )
    await assert.rejects(
      decoding.input('in', { value: serdes.string }).pipe('a', 'x', { timestamp: 1 }),
      (error) => EngineError.is(error) && error.code === 'DECODE_FAILED',
    )
    const producing = driverOf((topology) => topology.stream('in').to('out', { value: serdes.int32 as never }))
    await assert.rejects(
      producing.input('in').pipe('a', 'x', { timestamp: 1 }),
      (error) => EngineError.is(error) && error.code === 'PRODUCE_FAILED',
    )
  })
})

describe('processors', () => {
  test('keep state, forward any number of records, and see what record they are at', async () => {
    const seen = keyValueStore<string, number>('seen')
    const driver = driverOf((topology) =>
      topology
        .stream('in')
        .process<string, number>(
          (context) => {
            const store = context.store(seen)
            return (_value, key, record) => {
              const count = (store.get(key) ?? 0) + 1
              store.put(key, count)
              for (let i = 0; i < count; i++) void context.forward(key, i, { timestamp: record.timestamp + i })
            }
          },
          { stores: [seen] },
        )
        .to('out'),
    )
    for (const at of [10, 20]) await driver.input('in').pipe('a', 'x', { timestamp: at, headers: [['h', 'v']] })
    const told = driver.output('out').readAll()
    assert.deepEqual(
      told.map(({ value, timestamp }) => [value, timestamp]),
      [
        [0, 10],
        [0, 20],
        [1, 21],
      ],
    )
    assert.deepEqual(told[0]?.headers, [['h', 'v']])
    assert.equal(driver.store<KeyValueStore<string, number>>('seen').get('a'), 2)
  })

  test('have timers by key in event time, one a key', async () => {
    const driver = driverOf((topology) =>
      topology
        .stream('in', { value: serdes.json<number>() })
        .processValues<string>(
          (context) => ({
            process(value, key) {
              if (value < 0) context.timers.delete(key)
              else context.timers.set(key, value)
            },
            onTimer: (key, at) => context.forward(`${key} at ${at}`),
          }),
          { timers: true },
        )
        .to('out'),
    )
    const pipe = (key: string, value: number, timestamp: number): Promise<void> =>
      driver.input('in').pipe(key, value, { timestamp })
    await pipe('a', 100, 0)
    await pipe('b', 50, 1)
    await pipe('a', 60, 2)
    await pipe('c', 55, 3)
    await pipe('c', -1, 4)
    assert.deepEqual(values(driver), [])
    await pipe('d', 1000, 60)
    const told = driver.output('out').readAll()
    assert.deepEqual(
      told.map(({ key, value, timestamp }) => [key, value, timestamp]),
      [
        ['b', 'b at 50', 50],
        ['a', 'a at 60', 60],
      ],
    )
  })

  test('have schedules in event time and by the wall clock', async () => {
    const driver = driverOf((topology) =>
      topology
        .stream('in')
        .process<string, string>((context) => {
          context.schedule('10ms', 'event-time', (at) => context.forward('event', `${at}`))
          const wall = context.schedule('1s', 'wall-clock', (at) => {
            wall.cancel()
            return context.forward('wall', `${at}`)
          })
          return () => undefined
        })
        .to('out'),
    )
    for (const timestamp of [3, 5, 12, 41]) await driver.input('in').pipe('a', 'x', { timestamp })
    await driver.advanceWallClock('1500ms')
    await driver.advanceWallClock('1h')
    assert.deepEqual(values(driver), ['3', '12', '41', '1000'])
  })

  test('may not touch stores they did not name', async () => {
    const driver = driverOf((topology) =>
      topology
        .stream('in')
        .process((context) => {
          context.store('other')
          return () => undefined
        })
        .to('out'),
    )
    await assert.rejects(
      driver.input('in').pipe('a', 1),
      (error) => EngineError.is(error) && /does? not name|do not name/.test(error.message),
    )
  })
})

describe('time', () => {
  test('the watermark lies behind by what a source allows, so late is later', async () => {
    const build = (topology: Topology): void =>
      topology
        .stream('in', { watermark: { maxOutOfOrderness: '5ms' } })
        .groupByKey()
        .windowedBy(tumbling(10), { emit: 'on-close' })
        .count()
        .toStream()
        .to('out')
    const driver = driverOf(build)
    for (const timestamp of [1, 12, 3, 15, 4]) await driver.input('in').pipe('a', 1, { timestamp })
    assert.deepEqual(values(driver), [2])
    assert.deepEqual(
      driver.dropped().map(({ reason, timestamp }) => [reason, timestamp]),
      [['late', 4]],
    )
  })

  test('windows that follow windows lose nothing when time jumps', async () => {
    const driver = driverOf((topology) =>
      topology
        .stream('in')
        .groupByKey()
        .windowedBy(tumbling(10), { emit: 'on-close' })
        .count()
        .toStream()
        .selectKey((_count, window) => window.key)
        .groupByKey()
        .windowedBy(tumbling(20), { emit: 'on-close' })
        .reduce((a, b) => a + b)
        .toStream()
        .to('out'),
    )
    for (const timestamp of [1, 2, 11, 25, 1000]) await driver.input('in').pipe('a', 1, { timestamp })
    const told = driver.output<Windowed<string>, number>('out').readAll()
    assert.deepEqual(
      told.map(({ key, value }) => [key.start, value]),
      [
        [0, 3],
        [20, 1],
      ],
    )
  })

  test('a join below another one meets what that tells before it is due itself, also when time jumps', async () => {
    const driver = driverOf((topology) => {
      const right = topology.stream<string, string>('right')
      topology
        .stream<string, string>('left')
        .outerJoin(right, (a, b) => `(${a} ${b})`, { within: { before: 35, after: 25 }, grace: 10 })
        .outerJoin(right, (a, b) => `(${a} ${b})`, { within: { before: 10, after: 40 }, grace: 55 })
        .to('out')
    })
    const random = new Random(7)
    for (let n = 0, timestamp = 1000; n < 300; n++, timestamp += random.int(30))
      await driver.input(random.pick(['left', 'right'])).pipe(`k${random.int(20)}`, `r${n}`, { timestamp })
    const ofRight = values(driver).filter((value) => String(value).startsWith('((null r'))
    assert.ok(ofRight.length > 20)
    // Each is at least its own partner.
    assert.deepEqual(
      ofRight.filter((value) => String(value).endsWith('null)')),
      [],
    )
  })

  for (const how of ['leftJoin', 'outerJoin'] as const) {
    test(`a record that comes to ${how} behind its window and grace is counted as late, not told alone`, async () => {
      const driver = driverOf((topology) => {
        const right = topology.stream<string, string>('right')
        const left = topology.stream<string, string>('left')
        const both = (a: string | null, b: string | null): string => `${a} ${b}`
        const bounds = { within: 10, grace: 5 }
        const joined = how === 'leftJoin' ? left.leftJoin(right, both, bounds) : left.outerJoin(right, both, bounds)
        joined.to('out')
      })
      await driver.input('right').pipe('other', 'right', { timestamp: 5000 })
      for (const [value, timestamp] of [
        ['in time', 1000],
        ['ahead', 2000],
        ['late', 1000],
        ['far ahead', 3000],
      ] as const)
        await driver.input('left').pipe('k', value, { timestamp })
      assert.deepEqual(values(driver), ['in time null', 'ahead null'])
      assert.deepEqual(
        driver.dropped().map(({ reason, value }) => [reason, value]),
        [['late', 'late']],
      )
    })
  }

  test('windows may close while the input is quiet', async () => {
    const driver = driverOf((topology) =>
      topology
        .stream('in')
        .groupByKey()
        .windowedBy(tumbling('10s', { closeAfterIdle: '30s' }), { emit: 'on-close' })
        .count()
        .toStream()
        .to('out'),
    )
    await driver.input('in').pipe('a', 1, { timestamp: 1000 })
    await driver.advanceWallClock('29s')
    assert.deepEqual(values(driver), [])
    await driver.advanceWallClock('2s')
    assert.deepEqual(values(driver), [1])
    await driver.input('in').pipe('a', 1, { timestamp: 2000 })
    assert.deepEqual(
      driver.dropped().map((drop) => drop.reason),
      ['late'],
    )
  })

  for (const isRestarted of [false, true]) {
    test(`suppressed windows may close while the input is quiet, once${isRestarted ? ', also behind a restart' : ''}`, async () => {
      const driver = driverOf((topology) =>
        topology
          .stream('in')
          .groupByKey()
          .windowedBy(tumbling('10s', { closeAfterIdle: '30s' }))
          .count()
          .suppress({ until: 'window-closes' })
          .toStream()
          .to('out'),
      )
      await driver.input('in').pipe('a', 1, { timestamp: 1000 })
      await driver.advanceWallClock('31s')
      if (isRestarted) await driver.restart()
      await driver.input('in').pipe('a', 1, { timestamp: 2000 })
      await driver.input('in').pipe('a', 1, { timestamp: 20_000 })
      assert.deepEqual(values(driver), [1])
      assert.deepEqual(
        driver.dropped().map((drop) => drop.reason),
        ['late', 'late'],
      )
    })
  }

  for (const suppressed of [false, true]) {
    test(`${suppressed ? 'suppressed windows' : 'windows'} close while the input is quiet, also behind a restart`, async () => {
      const window = tumbling('10s', { closeAfterIdle: '30s' })
      const driver = driverOf((topology) => {
        const grouped = topology.stream('in').groupByKey()
        const closed = suppressed
          ? grouped.windowedBy(window).count().suppress({ until: 'window-closes' })
          : grouped.windowedBy(window, { emit: 'on-close' }).count()
        closed.toStream().to('out')
      })
      await driver.input('in').pipe('a', 1, { timestamp: 1000 })
      await driver.advanceWallClock('20s')
      await driver.restart()
      await driver.advanceWallClock('29s')
      assert.deepEqual(values(driver), [])
      await driver.advanceWallClock('11s')
      assert.deepEqual(values(driver), [1])
    })
  }

  for (const suppressed of [false, true]) {
    test(`all ${suppressed ? 'suppressed windows' : 'windows'} that are open close while the input is quiet, each at its time`, async () => {
      const window = tumbling('10s', { grace: '30s', closeAfterIdle: '20s' })
      const driver = driverOf((topology) => {
        const grouped = topology.stream('in').groupByKey()
        const closed = suppressed
          ? grouped.windowedBy(window).count().suppress({ until: 'window-closes' })
          : grouped.windowedBy(window, { emit: 'on-close' }).count()
        closed.toStream().to('out')
      })
      await driver.input('in').pipe('a', 1, { timestamp: 1000 })
      await driver.input('in').pipe('a', 1, { timestamp: 12_000 })
      await driver.input('in').pipe('a', 1, { timestamp: 13_000 })
      await driver.advanceWallClock('26s')
      assert.deepEqual(values(driver), [])
      await driver.advanceWallClock('2s')
      assert.deepEqual(values(driver), [1])
      await driver.advanceWallClock('8s')
      assert.deepEqual(values(driver), [])
      await driver.advanceWallClock('2s')
      assert.deepEqual(values(driver), [2])
    })
  }

  test('records that a filter keeps out are no quiet', async () => {
    const driver = driverOf((topology) =>
      topology
        .stream('in', { value: serdes.json<number>() })
        .filter((value) => value % 29 === 0)
        .groupByKey()
        .windowedBy(tumbling('60s', { closeAfterIdle: '10s' }), { emit: 'on-close' })
        .count()
        .toStream()
        .to('out'),
    )
    // Event time goes half as fast as the clock.
    for (let second = 0; second < 130; second++) {
      await driver.input('in').pipe('a', second, { timestamp: 500 * second })
      await driver.advanceWallClock('1s')
    }
    assert.deepEqual(values(driver), [5])
    assert.deepEqual(driver.dropped(), [])
  })

  for (const first of [tumbling('10s'), tumbling('10s', { closeAfterIdle: '3s' })]) {
    test('windows of windows wait for what those before them tell', async () => {
      const driver = driverOf((topology) =>
        topology
          .stream('in')
          .groupByKey()
          .windowedBy(first, { emit: 'on-close' })
          .count()
          .toStream({ key: (_count, window) => window.key })
          .groupByKey()
          .windowedBy(tumbling('20s', { closeAfterIdle: '3s' }), { emit: 'on-close' })
          .reduce((sum, count) => sum + count)
          .toStream()
          .to('out'),
      )
      for (let second = 0; second < 70; second++) {
        await driver.input('in').pipe('a', 1, { timestamp: 1000 * second })
        await driver.advanceWallClock('1s')
      }
      assert.deepEqual(values(driver), [20, 20, 20])
      assert.deepEqual(driver.dropped(), [])
    })
  }

  test('the last windows of windows wait for the last of those before them, behind a restart too', async () => {
    const driver = driverOf((topology) =>
      topology
        .stream('in')
        .groupByKey()
        .windowedBy(tumbling('1s', { closeAfterIdle: '500ms' }), { emit: 'on-close' })
        .count()
        .toStream({ key: (_count, window) => window.key })
        .groupByKey()
        .windowedBy(tumbling('2s', { closeAfterIdle: '500ms' }), { emit: 'on-close' })
        .reduce((sum, count) => sum + count)
        .toStream()
        .to('out'),
    )
    for (let i = 0; i < 94; i++) await driver.input('in').pipe('a', 1, { timestamp: 100 * i })
    await driver.restart()
    await driver.advanceWallClock('10s')
    assert.deepEqual(values(driver), [20, 20, 20, 20, 14])
    assert.deepEqual(driver.dropped(), [])
  })

  test('scheduled sources fire on their grid', async () => {
    const driver = driverOf(
      (topology) =>
        topology
          .scheduled('beat', {
            every: '10s',
            emit: ({ scheduledAt, count }) => ({ key: 'k', value: `${count}@${scheduledAt}` }),
          })
          .to('out'),
      { startAt: 5000 },
    )
    await driver.advanceWallClock('35s')
    assert.deepEqual(values(driver), ['0@15000', '1@25000', '2@35000'])
  })
})

describe('the driver', () => {
  test('spreads keys over partitions and keeps a store for each', async () => {
    const driver = driverOf((topology) => topology.stream('in').groupByKey().count({ store: 'counts' }), {
      partitions: 4,
    })
    for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) await driver.input('in').pipe(key, 1, { timestamp: 1 })
    const sizes = [0, 1, 2, 3].map(
      (partition) => [...driver.store<KeyValueStore<string, unknown>>('counts', partition).all()].length,
    )
    assert.equal(
      sizes.reduce((a, b) => a + b),
      6,
    )
    assert.ok(sizes.filter((size) => size > 0).length > 1)
  })

  test('looks up a global table by any key', async () => {
    const driver = driverOf(
      (topology) => {
        const ref = topology.globalTable<string, string>('ref')
        topology
          .stream<string, string>('in')
          .join(ref, (value, name) => `${value} ${name}`, { on: (value) => value })
          .to('out')
      },
      { partitions: 3 },
    )
    await driver.input('ref').pipe('x', 'eks', { timestamp: 1 })
    await driver.input('in').pipe('k', 'x', { timestamp: 2 })
    await driver.input('in').pipe('k', 'y', { timestamp: 3 })
    assert.deepEqual(values(driver), ['x eks'])
  })

  test('a global table goes by its timestamp function', async () => {
    const versions = { name: 'versions', type: 'versioned', historyRetention: '1h' } as const
    const row = { key: serdes.string, value: serdes.json<{ name: string; at: number }>() }
    const driver = driverOf((topology) => {
      const ref = topology.globalTable('ref', { ...row, timestamp: ({ at }) => at, store: versions })
      topology
        .stream<string, string>('in')
        .leftJoin(ref, (_value, found) => found?.name ?? 'none', { on: (value) => value })
        .to('out')
    })
    const ref = driver.input<string, { name: string; at: number }>('ref', row)
    await ref.pipe('x', { name: 'old', at: 1000 }, { timestamp: 500_000 })
    await ref.pipe('x', { name: 'gone', at: -1 }, { timestamp: 500_001 })
    await ref.pipe('x', { name: 'new', at: 2000 }, { timestamp: 500_002 })
    for (const timestamp of [1500, 2500]) await driver.input('in').pipe('k', 'x', { timestamp })
    assert.deepEqual(values(driver), ['old', 'new'])
  })

  test('an unlimited window never ends', async () => {
    const driver = driverOf((topology) =>
      topology
        .stream('in')
        .groupByKey()
        .windowedBy(unlimited({ start: 10 }))
        .count()
        .toStream()
        .to('out'),
    )
    for (const timestamp of [5, 10, 99_999]) await driver.input('in').pipe('a', 1, { timestamp })
    assert.deepEqual(values(driver), [1, 2])
  })

  test('names the stores there are when asked for another', () => {
    const driver = driverOf((topology) => topology.stream('in').groupByKey().count({ store: 'counts' }))
    assert.throws(() => driver.store('count'), /There is no store count of partition 0 \(stores: counts\)/)
    assert.throws(() => driver.input('elsewhere'), /does not read the topic elsewhere/)
  })
})
