/** Schedules that tell the rows of a store and take them out, beside functions that wait: no record comes in between. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Random } from '../../../src/base/random.ts'
import { defineApp, keyValueStore, type Serde, serdes } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

type Clock = 'event-time' | 'wall-clock'
type How = 'at once' | 'a turn later' | 'slowly'

interface Places {
  readonly above: How
  readonly own: How
  readonly below: How
  readonly concurrency?: number
  readonly maxInFlight?: number
}

const number = { key: serdes.string, value: serdes.json<number>() }

/** What the application's functions give back: the value, or a promise of it. */
function given(how: How, n: number): number | Promise<number> {
  if (how === 'at once') return n
  return how === 'slowly' && n % 20 === 0 ? sleep(1, n) : Promise.resolve(n)
}

/** `overlaps` gets what is under way while a callback is. */
function flushing(clock: Clock, { above, own, below, concurrency }: Places, timers: boolean, overlaps: string[]) {
  const counts = keyValueStore('counts', { key: serdes.string, value: serdes.number as Serde<number> })
  return defineApp({
    applicationId: 'test',
    build: (topology) =>
      void topology
        .stream('in', { ...number, watermark: { maxOutOfOrderness: '1s' } })
        .mapValues((n) => given(above, n))
        .process<string, number>(
          (context) => {
            const rows = context.store(counts)
            const under = new Set<string>()
            const during = async (what: string, work: () => Promise<unknown> | undefined): Promise<void> => {
              if (what === 'callback') overlaps.push(...under)
              else if (under.has('callback') || under.has(`timer of ${what}`)) overlaps.push(what)
              under.add(what)
              await work()
              under.delete(what)
            }
            context.schedule('1s', clock, () =>
              during('callback', async () => {
                for (const [key, count] of rows.all()) {
                  await context.forward(key, count)
                  rows.delete(key)
                }
              }),
            )
            const add = (key: string, before: number): void => rows.put(key, before + 1)
            return {
              process(n, key, { timestamp }) {
                const before = rows.get(key) ?? 0
                if (timers && context.timers.get(key) === undefined) context.timers.set(key, timestamp + 300)
                const answer = given(own, n)
                if (typeof answer === 'number') {
                  if (under.has('callback') || under.has(`timer of ${key}`)) overlaps.push(key)
                  return add(key, before)
                }
                return during(key, () => answer.then(() => add(key, before)))
              },
              onTimer(key) {
                if (under.has(key)) overlaps.push(`${key} in its timer`)
                return during(`timer of ${key}`, async () => {
                  const count = rows.get(key) ?? 0
                  await context.forward(key, count)
                  rows.delete(key)
                })
              },
            }
          },
          { stores: [counts], timers, ...number, ...(concurrency !== undefined && { concurrency }) },
        )
        .mapValues((count) => given(below, count))
        .to('out', number),
  })
}

/** A backlog of four partitions, and what has to be told of it. */
function backlog() {
  const random = new Random(7)
  const records = Array.from({ length: 700 }, (_, value) => ({
    ...{ key: random.chance(0.5) ? 'hot' : `cold-${random.int(40)}`, value, timestamp: 1_000_000 + value * 50 },
  }))
  const expected = new Map<string, number>()
  for (const { key } of records) expected.set(key, (expected.get(key) ?? 0) + 1)
  const ends = [0, 1, 2, 3].flatMap((partition) =>
    [2_000_000, 2_010_000].map((timestamp) => ({ key: 'end', value: 1, timestamp, partition })),
  )
  return { records: [...records, ...ends], expected }
}

const places: readonly Places[] = [
  { above: 'at once', own: 'at once', below: 'at once' },
  { above: 'a turn later', own: 'at once', below: 'at once' },
  { above: 'slowly', own: 'at once', below: 'slowly' },
  { above: 'at once', own: 'a turn later', below: 'at once' },
  { above: 'at once', own: 'slowly', below: 'a turn later' },
  { above: 'slowly', own: 'slowly', below: 'slowly' },
  { above: 'slowly', own: 'slowly', below: 'slowly', concurrency: 3, maxInFlight: 4 },
]

for (const clock of ['event-time', 'wall-clock'] as const)
  describe(`counts that a schedule tells and takes out, ${clock}`, () => {
    for (const each of places)
      for (const timers of [false, true])
        test(`are all told: ${Object.entries(each)
          .map((place) => place.join(' '))
          .join(', ')}${timers ? ', with timers of keys' : ''}`, async () => {
          const { records, expected } = backlog()
          const config = each.maxInFlight === undefined ? {} : { 'lane.max-in-flight': each.maxInFlight }
          for (const lanes of [1, 2, 4]) {
            const overlaps: string[] = []
            const app = flushing(clock, each, timers, overlaps)
            const driver = new TopologyTestDriver(app, { lanes, partitions: 4, commits: 'interval', config })
            await driver.input('in').pipeAll(records)
            await driver.advanceWallClock('3s')
            const told = new Map<string, number>()
            await driver.commit()
            for (const { key, value } of driver.output<string, number>('out').readAll())
              if (key !== 'end') told.set(key as string, (told.get(key as string) ?? 0) + (value as number))
            driver.close()
            assert.deepEqual(overlaps, [], `${lanes} lanes`)
            assert.deepEqual([...told].sort(), [...expected].sort(), `${lanes} lanes`)
          }
        })
  })
