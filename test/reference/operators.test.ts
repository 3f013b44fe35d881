import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../support/properties.ts'
import {
  defineApp,
  hopping,
  session,
  type Stream,
  serdes,
  sliding,
  type Table,
  type Topology,
  tumbling,
  type Windowed,
} from '../../src/index.ts'
import { TopologyTestDriver } from '../../src/testing/index.ts'
import { type Event, pairsOf, sessionsOf, slidingSums, windowSums } from '../unit/operators/models.ts'

const runs = { numRuns: 60 }
const event: fc.Arbitrary<Event> = fc.record({
  key: fc.constantFrom('a', 'b'),
  value: fc.integer({ min: 1, max: 99 }),
  at: fc.integer({ min: 0, max: 120 }),
})
const events = fc.array(event, { maxLength: 25 })
const ordered = events.map((list) => [...list].sort((a, b) => a.at - b.at))
const distinct = fc.uniqueArray(event, { maxLength: 20, selector: (e) => `${e.key}@${e.at}` })

const numbers = (topology: Topology, topic: string): Stream<string, number> =>
  topology.stream(topic, { key: serdes.string, value: serdes.json<number>() })

async function feedAll(driver: TopologyTestDriver, topic: string, list: readonly Event[]): Promise<void> {
  for (const { key, value, at } of list) await driver.input(topic).pipe(key, value, { timestamp: at })
}

/** The newest value of each window. */
function newest(driver: TopologyTestDriver): Map<string, number> {
  const result = new Map<string, number>()
  for (const { key, value } of driver.output<Windowed<string>, number | null>('out').readAll()) {
    if (value === null) result.delete(`${key.key}@${key.start}`)
    else result.set(`${key.key}@${key.start}`, value)
  }
  return result
}

describe('windows against naive models', () => {
  test('tumbling and hopping windows hold exactly the events in them that are not late', async () => {
    const shape = fc.record({
      advance: fc.integer({ min: 1, max: 20 }),
      times: fc.integer({ min: 1, max: 4 }),
      grace: fc.integer({ min: 0, max: 40 }),
    })
    await fc.assert(
      fc.asyncProperty(events, shape, async (list, { advance, times, grace }) => {
        const size = advance * times
        const driver = new TopologyTestDriver(
          defineApp({
            applicationId: 'windows',
            build: (topology) =>
              numbers(topology, 'in')
                .groupByKey()
                .windowedBy(times === 1 ? tumbling(size, { grace }) : hopping(size, advance, { grace }))
                .reduce((a, b) => a + b)
                .toStream()
                .to('out'),
          }),
        )
        await feedAll(driver, 'in', list)
        assert.deepEqual(newest(driver), windowSums(list, size, advance, grace))
      }),
      runs,
    )
  })

  test('final results are those of the updates, each told once', async () => {
    await fc.assert(
      fc.asyncProperty(
        events,
        fc.integer({ min: 1, max: 30 }),
        fc.integer({ min: 0, max: 30 }),
        async (list, size, grace) => {
          const app = defineApp({
            applicationId: 'final',
            build(topology) {
              const grouped = numbers(topology, 'in').groupByKey()
              const windowed = tumbling(size, { grace })
              const add = (a: number, b: number): number => a + b
              grouped.windowedBy(windowed, { emit: 'on-close' }).reduce(add).toStream().to('closed')
              grouped.windowedBy(windowed).reduce(add).suppress({ until: 'window-closes' }).toStream().to('suppressed')
            },
          })
          const driver = new TopologyTestDriver(app)
          await feedAll(driver, 'in', [...list, { key: 'end', value: 0, at: 10_000 }])
          const told = (topic: string): string[] =>
            driver
              .output<Windowed<string>, number>(topic)
              .readAll()
              .map(({ key, value }) => `${key.key}@${key.start}=${value}`)
              .sort()
          const expected = [...windowSums(list, size, size, grace)].map(([window, sum]) => `${window}=${sum}`).sort()
          assert.deepEqual(told('closed'), expected)
          assert.deepEqual(told('suppressed'), expected)
        },
      ),
      runs,
    )
  })

  test('windows with an inclusive end tell one final result too, with either operator', async () => {
    const kinds = fc.constantFrom('session', 'sliding')
    await fc.assert(
      fc.asyncProperty(
        events,
        kinds,
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 0, max: 20 }),
        async (list, kind, length, grace) => {
          const app = defineApp({
            applicationId: 'inclusive',
            build(topology) {
              const grouped = numbers(topology, 'in').groupByKey()
              const add = (a: number, b: number): number => a + b
              const windowed = (emit: 'on-close' | 'on-update'): Table<Windowed<string>, number> =>
                kind === 'session'
                  ? grouped.windowedBy(session(length, { grace }), { emit }).reduce(add)
                  : grouped.windowedBy(sliding(length, { grace }), { emit }).reduce(add)
              windowed('on-close').toStream().to('closed')
              windowed('on-update').suppress({ until: 'window-closes' }).toStream().to('suppressed')
            },
          })
          const driver = new TopologyTestDriver(app)
          await feedAll(driver, 'in', [
            ...list.map((e) => ({ ...e, at: e.at + 50 })),
            { key: 'end', value: 0, at: 10_000 },
          ])
          const told = (topic: string): string[] =>
            driver
              .output<Windowed<string>, number>(topic)
              .readAll()
              .map(({ key, value }) => `${key.key}@${key.start}-${key.end}=${value}`)
              .sort()
          const closed = told('closed')
          const names = closed.map((line) => line.split('=')[0])
          assert.equal(new Set(names).size, names.length)
          assert.deepEqual(told('suppressed'), closed)
        },
      ),
      runs,
    )
  })

  test('sessions are what the gaps say, in whatever order events come within the grace', async () => {
    await fc.assert(
      fc.asyncProperty(events, fc.integer({ min: 1, max: 20 }), async (list, gap) => {
        const app = defineApp({
          applicationId: 'sessions',
          build: (topology) =>
            numbers(topology, 'in')
              .groupByKey()
              .windowedBy(session(gap, { grace: 1000 }))
              .reduce((a, b) => a + b)
              .toStream()
              .to('out'),
        })
        const driver = new TopologyTestDriver(app)
        await feedAll(driver, 'in', list)
        const open = new Map<string, number>()
        for (const { key, value } of driver.output<Windowed<string>, number | null>('out').readAll()) {
          const name = `${key.key}[${key.start},${key.end}]`
          if (value === null) open.delete(name)
          else open.set(name, value)
        }
        assert.deepEqual([...open].map(([name, sum]) => `${name}=${sum}`).sort(), sessionsOf(list, gap))
      }),
      runs,
    )
  })

  test('sliding windows hold every set of events at most the difference apart', async () => {
    const later = distinct.map((list) => list.map((e) => ({ ...e, at: e.at + 50 })))
    await fc.assert(
      fc.asyncProperty(later, fc.integer({ min: 1, max: 30 }), async (list, difference) => {
        const app = defineApp({
          applicationId: 'sliding',
          build: (topology) =>
            numbers(topology, 'in')
              .groupByKey()
              .windowedBy(sliding(difference, { grace: 1000 }))
              .reduce((a, b) => a + b)
              .toStream()
              .to('out'),
        })
        const driver = new TopologyTestDriver(app)
        await feedAll(driver, 'in', list)
        assert.deepEqual(new Map([...newest(driver)].sort()), new Map([...slidingSums(list, difference)].sort()))
      }),
      runs,
    )
  })
})

describe('joins against naive models', () => {
  const sides = fc.tuple(ordered, ordered, fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 20 }))

  /** Both sides in the order of their times; at one time the left side first. */
  async function feedBoth(driver: TopologyTestDriver, left: readonly Event[], right: readonly Event[]): Promise<void> {
    const all = [...left.map((e) => ({ ...e, topic: 'l' })), ...right.map((e) => ({ ...e, topic: 'r' }))]
    all.sort((a, b) => a.at - b.at)
    for (const { topic, key, value, at } of all) await driver.input(topic).pipe(key, value, { timestamp: at })
    // Event time is that of the side which is behind: it ends on both.
    for (const timestamp of [100_000, 300_000])
      for (const topic of ['l', 'r']) await driver.input(topic).pipe('end', 0, { timestamp })
  }

  test('an inner join gives every pair within the window once', async () => {
    await fc.assert(
      fc.asyncProperty(sides, async ([left, right, before, after]) => {
        const app = defineApp({
          applicationId: 'inner',
          build(topology) {
            const other = numbers(topology, 'r')
            numbers(topology, 'l')
              .join(other, (l, r, key) => `${key}:${l}-${r}`, { within: { before, after } })
              .to('out')
          },
        })
        const driver = new TopologyTestDriver(app)
        await feedBoth(driver, left, right)
        const pairs = driver
          .output<string, string>('out')
          .readAll()
          .filter((record) => record.key !== 'end')
          .map((record) => record.value)
        assert.deepEqual(pairs.sort(), pairsOf(left, right, before, after))
      }),
      runs,
    )
  })

  test('an outer join gives every pair, and every record without a partner once', async () => {
    await fc.assert(
      fc.asyncProperty(sides, async ([left, right, before, after]) => {
        const app = defineApp({
          applicationId: 'outer',
          build(topology) {
            const other = numbers(topology, 'r')
            numbers(topology, 'l')
              .outerJoin(other, (l, r, key) => `${key}:${l}-${r}`, { within: { before, after } })
              .filter((_pair, key) => key !== 'end')
              .to('out')
          },
        })
        const driver = new TopologyTestDriver(app)
        await feedBoth(driver, left, right)
        const matches = (l: Event, r: Event): boolean =>
          l.key === r.key && r.at >= l.at - before && r.at <= l.at + after
        const alone = [
          ...left.filter((l) => !right.some((r) => matches(l, r))).map((l) => `${l.key}:${l.value}-null`),
          ...right.filter((r) => !left.some((l) => matches(l, r))).map((r) => `${r.key}:null-${r.value}`),
        ]
        const told = driver
          .output<string, string>('out')
          .readAll()
          .map((record) => record.value)
        assert.deepEqual(told.sort(), [...pairsOf(left, right, before, after), ...alone].sort())
      }),
      runs,
    )
  })
})

describe('several partitions', () => {
  test('a re-keyed count does not depend on the number of partitions', async () => {
    const records = fc.array(
      fc.record({ key: fc.string({ minLength: 1, maxLength: 3 }), group: fc.integer({ min: 0, max: 5 }) }),
      { maxLength: 30 },
    )
    await fc.assert(
      fc.asyncProperty(records, fc.integer({ min: 1, max: 7 }), async (list, partitions) => {
        const app = defineApp({
          applicationId: 'groups',
          build: (topology) =>
            topology
              .stream('in', { value: serdes.json<{ group: number }>() })
              .groupBy((value) => value.group)
              .count()
              .toStream()
              .to('out'),
        })
        const driver = new TopologyTestDriver(app, { partitions })
        for (const { key, group } of list)
          await driver.input('in').pipe(key.toWellFormed(), { group }, { timestamp: 1 })
        const counts = new Map<unknown, unknown>()
        for (const { key, value } of driver.output('out').readAll()) counts.set(String(key), value)
        const expected = new Map<unknown, unknown>()
        for (const { group } of list) expected.set(String(group), ((expected.get(String(group)) as number) ?? 0) + 1)
        assert.deepEqual(new Map([...counts].sort()), new Map([...expected].sort()))
      }),
      runs,
    )
  })
})
