/** Timers that are due late or together, and what they tell behind a change of key. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Application, defineApp, keyValueStore, serdes, type Topology, tumbling } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

const number = { key: serdes.string, value: serdes.json<number>() }
const text = { key: serdes.string, value: serdes.string }
const application = (build: (topology: Topology) => void): Application => defineApp({ applicationId: 'test', build })

/** A timer a second after each record whose key begins with `late`; `before` what it tells. */
function timed(topology: Topology, before: () => Promise<void> | undefined) {
  const values = keyValueStore('values', number)
  return topology.stream('in', number).processValues<number>(
    (context) => ({
      process(value, key, record) {
        context.store(values).put(key, value ?? 0)
        if (key.startsWith('late')) context.timers.set(key, record.timestamp + 1000)
      },
      onTimer(key) {
        const value = context.store(values).get(key as string) ?? -1
        const waits = before()
        if (waits === undefined) return context.forward(value)
        return waits.then(() => context.forward(value))
      },
    }),
    { stores: [values], timers: true, value: number.value },
  )
}

describe('timers that are overdue when the application starts', () => {
  const keys = Array.from({ length: 8 }, (_, i) => `late${i}`)

  /** Records that come late set timers that are due at the next instant. Until that comes the application starts twice. */
  async function toldOf(app: Application, lanes: number, meanwhile: () => void): Promise<Map<string, unknown[]>> {
    const driver = new TopologyTestDriver(app, { lanes, partitions: 4 })
    const input = driver.input<string, number>('in', number)
    const timeComesTo = async (timestamp: number): Promise<void> => {
      for (let partition = 0; partition < 4; partition++)
        await input.pipe(`time${partition}`, 0, { timestamp, partition })
    }
    await timeComesTo(100_000)
    for (const [i, key] of keys.entries()) await input.pipe(key, i, { timestamp: 50_000 })
    await driver.restart()
    // The time is the same, so that nothing has come to the next instant.
    await input.pipe('late0', 80, { timestamp: 50_000 })
    await driver.restart()
    meanwhile()
    await timeComesTo(200_000)
    const told = Map.groupBy(driver.output<string, unknown>('out').readAll(), ({ key }) => key as string)
    return new Map([...told].map(([key, records]) => [key, records.map(({ value }) => value)]))
  }

  const expected = new Map(keys.map((key, i) => [key, [i === 0 ? 80 : i]]))
  const inOrder = (told: Map<string, unknown[]>): Map<string, unknown[]> => new Map([...told].sort())

  for (const lanes of [1, 2]) {
    test(`fire once, at the next instant, ${lanes} lanes`, async () => {
      const app = application((topology) => timed(topology, () => undefined).to('out', number))
      assert.deepEqual(inOrder(await toldOf(app, lanes, () => undefined)), expected)
    })

    test(`are not forgotten while their functions have not answered, ${lanes} lanes`, async () => {
      const gate = Promise.withResolvers<void>()
      const app = application((topology) => timed(topology, () => gate.promise).to('out', number))
      assert.deepEqual(inOrder(await toldOf(app, lanes, gate.resolve)), expected)
    })

    test(`fire in a task of two stages, ${lanes} lanes`, async () => {
      const app = application((topology) => {
        const told = timed(topology, () => undefined)
        const renamed = told.selectKey((_value, key) => `x${key}`, { key: serdes.string }).toTable()
        told.leftJoin(renamed, (value) => value).to('out', number)
      })
      assert.deepEqual(inOrder(await toldOf(app, lanes, () => undefined)), expected)
    })
  }
})

test('what timers and a schedule of one instant tell stays in its order behind a change of key', async () => {
  for (const lanes of [1, 2]) {
    const called: string[] = []
    const app = application((topology) =>
      topology
        .stream('in', number)
        .process<string, string>(
          (context) => {
            const tell = (key: string, value: string): void | Promise<void> => {
              called.push(value)
              return context.forward(key, value)
            }
            const open = new Set<string>()
            context.schedule('1s', 'event-time', () => {
              for (const key of open) void tell(key, `schedule ${key}`)
              open.clear()
            })
            return {
              process(_value, key, record) {
                if (key !== 'time') context.timers.set(key, record.timestamp + 1000)
              },
              onTimer(key) {
                open.add(key as string)
                return tell(key as string, `timer ${key as string}`)
              },
            }
          },
          { timers: true, ...text },
        )
        .groupBy(() => 'all', { key: serdes.string })
        .aggregate<string[]>(
          () => [],
          (all, value) => [...all, value as string],
          { store: { name: 'all', value: serdes.json<string[]>() } },
        )
        .toStream()
        .to('out'),
    )
    const driver = new TopologyTestDriver(app, { lanes })
    const input = driver.input<string, number>('in', number)
    for (const key of ['a', 'b', 'c']) await input.pipe(key, 0, { timestamp: 10_000 })
    for (const timestamp of [11_000, 12_000]) await input.pipe('time', 0, { timestamp })
    assert.equal(called.length, 6)
    assert.deepEqual(driver.output<string, unknown>('out').readAll().at(-1)?.value, called)
  }
})

test('what a record lets out and what it is handed over as itself have their places two levels deeper, whatever the lanes', async () => {
  const value = { key: serdes.string, value: serdes.string }
  const app = application((topology) => {
    const rows = topology
      .stream('in', number)
      .mapValues((n) => String(n))
      .groupByKey()
      .reduce((_old, row) => row, { store: { name: 'rows', value: serdes.string } })
    const letOut = rows.suppress({ until: '1h', maxRecords: 1 }).toStream()
    const both = letOut
      .map((n) => [`out ${n}`, `out ${n}`], value)
      .merge(rows.toStream().map((n) => [`row ${n}`, `row ${n}`], value))
    both
      .groupByKey()
      .reduce((_old, row) => row, { store: { name: 'spread', value: serdes.string } })
      .toStream()
      .groupBy(() => 'all', { key: serdes.string })
      .reduce((all, each) => `${all}, ${each}`, { store: { name: 'all', value: serdes.string } })
      .toStream()
      .to('out')
  })
  const told: unknown[] = []
  for (const lanes of [1, 2, 3]) {
    const driver = new TopologyTestDriver(app, { lanes, partitions: 8 })
    const input = driver.input<string, number>('in', number)
    for (let i = 0; i < 30; i++) await input.pipe(`k${i}`, i, { timestamp: 1000 + i })
    told.push(driver.output<string, unknown>('out').readAll().at(-1)?.value)
  }
  // All rows, and of each partition all but the one that is held back.
  assert.equal(String(told[0]).split(', ').length, 30 + 23)
  assert.deepEqual(new Set(told).size, 1)
})

describe('what forgets, read by what a timer told behind a change of key', () => {
  for (const lanes of [1, 2])
    for (const commits of ['each', 'interval'] as const)
      test(`is over at the time of the timer, ${lanes} lanes, commits ${commits}`, async () => {
        const store = { ttl: '30s' } as const
        const app = application((topology) => {
          const closed = topology
            .stream('in', number)
            .groupByKey()
            .windowedBy(tumbling('10s'), { emit: 'on-close' })
            .count()
            .toStream()
            .map((count, { key }) => [key, count] as const, { key: serdes.string, value: serdes.count })
          closed
            .groupByKey()
            .count({ store: { name: 'times', ...store } })
            .toStream()
            .to('times')
          const rows = topology.table('rows', { ...number, store: { name: 'rows', ...store } })
          closed.leftJoin(rows, (_count, row) => row ?? -1).to('joined', number)
        })
        const driver = new TopologyTestDriver(app, { lanes, commits })
        const [input, rows] = [driver.input<string, number>('in', number), driver.input<string, number>('rows', number)]
        await rows.pipe('a', 7, { timestamp: 1000 })
        for (const [key, timestamp] of [
          ['a', 1000],
          ['z', 20_000],
          ['a', 95_000],
          ['z', 300_000],
        ] as const) {
          if (key === 'z') await rows.pipe(key, 0, { timestamp })
          await input.pipe(key, 1, { timestamp })
        }
        await driver.commit()
        const told = (topic: string): unknown[] => {
          const all = driver.output<string, unknown>(topic).readAll()
          return all.filter(({ key }) => key === 'a').map(({ value }) => value)
        }
        assert.deepEqual(told('times'), [1, 1])
        assert.deepEqual(told('joined'), [7, -1])
      })
})

test('a row of a window that is past its retention is joined by no foreign key, wherever commits fall', async () => {
  for (const commits of ['each', 'interval'] as const) {
    const app = application((topology) => {
      const names = topology.table('names', text)
      const counts = topology.stream('in', number).groupByKey().windowedBy(tumbling('10s'))
      counts
        .count({ store: { name: 'counts', retention: '10s' } })
        .join(names, (count, name) => `${count} ${name}`, { on: () => 'the one' })
        .toStream()
        .selectKey((_told, { key }) => key, { key: serdes.string })
        .to('out', text)
    })
    const driver = new TopologyTestDriver(app, { commits })
    const [input, names] = [driver.input<string, number>('in', number), driver.input<string, string>('names', text)]
    await names.pipe('the one', 'A', { timestamp: 1000 })
    await input.pipe('a', 1, { timestamp: 1500 })
    await names.pipe('time', '', { timestamp: 2000 })
    for (const timestamp of [100_000, 101_000, 102_000]) {
      await input.pipe('z', 1, { timestamp })
      await names.pipe('time', '', { timestamp })
    }
    await names.pipe('the one', 'B', { timestamp: 103_000 })
    await input.pipe('z', 1, { timestamp: 104_000 })
    await driver.commit()
    const told = driver.output<string, string>('out', text).readAll()
    assert.deepEqual(
      told.filter(({ key }) => key === 'a').map(({ value }) => value),
      ['1 A'],
    )
  }
})
