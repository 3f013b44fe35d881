/**
 * Windowed tables joined with one another behind a change of key, with full topics: rows of the table that comes first
 * are read as they were, however far it has gone meanwhile, and whatever its store has forgotten.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Random } from '../../src/base/random.ts'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import { eventually } from '../support/millrace.ts'
import { advanceMs, type Event, gapMs, type Pair, sizeMs } from './apps/windowed-joins.ts'
import { byKey, type Out, produce, TestEngine } from './support/engine.ts'

const begin = 1_700_000_000_000

interface Happened extends Event {
  readonly timestamp: number
  readonly isLeft: boolean
}

/** Few keys have most of them. Those of one instant would be told in the order of their partitions. */
function someEvents(count: number): Happened[] {
  const random = new Random(1)
  const name = (): string => `k${Math.floor(12 * random.next() ** 3)}`
  let timestamp = begin
  return Array.from({ length: count }, () => {
    timestamp += 1 + random.int(80)
    return { key: name(), group: name(), timestamp, isLeft: random.chance(0.6) }
  })
}

/** Told of each window of each key: both counts, at every event that changed one. */
function pairsOf(
  events: readonly Happened[],
  startsOf: (timestamp: number) => readonly number[],
): Record<string, Pair[]> {
  const pairs: Record<string, Pair[]> = {}
  for (const { key, group, timestamp, isLeft } of events)
    for (const start of startsOf(timestamp)) {
      const id = `${isLeft ? key : group}@${start}-${start + sizeMs}`
      const told = pairs[id] ?? []
      pairs[id] = told
      const [left, right] = told.at(-1) ?? [null, null]
      told.push(isLeft ? [(left ?? 0) + 1, right] : [left, (right ?? 0) + 1])
    }
  return pairs
}

/** The same where the left side is told when its window closes, and read before that. */
function closingPairsOf(events: readonly Happened[]): Record<string, Pair[]> {
  const pairs: Record<string, Pair[]> = {}
  for (const [id, all] of Object.entries(pairsOf(events, tumbling))) {
    const last = all.at(-1) as Pair
    const told = all.filter(([, right], i) => right !== null && right !== (all[i - 1]?.[1] ?? null))
    pairs[id] = last[0] === null ? told : [...told, last]
  }
  return pairs
}

/** The sessions of the left stream, and what both sides count of each. */
function sessionsOf(events: readonly Happened[]): Record<string, Pair> {
  const found: Record<string, Pair> = {}
  const ofKey = Object.groupBy(
    events.filter(({ isLeft }) => isLeft),
    ({ key }) => key,
  )
  for (const [key, all = []] of Object.entries(ofKey)) {
    let [start, end, count] = [Number.NaN, Number.NaN, 0]
    for (const { timestamp } of [...all, { timestamp: Number.POSITIVE_INFINITY }]) {
      if (timestamp > end + gapMs) found[`${key}@${start}-${end}`] = [count, count]
      if (timestamp <= end + gapMs) [end, count] = [timestamp, count + 1]
      else [start, end, count] = [timestamp, timestamp, 1]
    }
  }
  return found
}

const tumbling = (at: number): number[] => [at - (at % sizeMs)]
const hopping = (at: number): number[] => [at - (at % advanceMs) - advanceMs, at - (at % advanceMs)]
const isOfEnd = ({ key }: Out): boolean => key?.startsWith('end') === true
const lastOf = (told: Record<string, unknown[]>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(told).flatMap(([key, all]) => (all.at(-1) === null ? [] : [[key, all.at(-1)]])))

for (const [lanes, store] of [
  [1, 'memory'],
  [4, 'lmdb'],
] as const)
  test(`of 20,000 events in the topics at the start each is told beside the row of its time, ${lanes} lanes, ${store}`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-windowed-joins-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const broker = await startEmbeddedBroker({ partitions: 4 })
    t.after(() => broker.close())
    const events = someEvents(20_000)
    const end = (events.at(-1) as Happened).timestamp + 3_600_000
    for (const topic of ['left', 'right']) {
      const own = events.filter(({ isLeft }) => isLeft === (topic === 'left'))
      const records = own.map(({ key, group, timestamp }) => ({ key, value: { key, group }, timestamp }))
      // One for each partition.
      const ends = Array.from({ length: 40 }, (_, i) => ({
        key: `end${i}`,
        value: { key: `end${i}`, group: `end${i}` },
        timestamp: end,
      }))
      await produce(broker.client(), topic, [...records, ...ends])
    }
    const engine = await TestEngine.start(
      t,
      'windowed-joins',
      { 'engine.lanes.count': lanes, 'engine.state.store': store, 'engine.state.dir': folder },
      broker,
    )
    await eventually('all is told', async () => (await engine.read('others')).length >= 20_080, 120_000)
    await engine.idle()
    const told = async (topic: string): Promise<Record<string, unknown[]>> =>
      byKey((await engine.read(topic)).filter((each) => !isOfEnd(each)))
    assert.deepEqual(await told('tumbled'), pairsOf(events, tumbling))
    assert.deepEqual(await told('hopped'), pairsOf(events, hopping))
    assert.deepEqual(await told('closing'), closingPairsOf(events))
    assert.deepEqual(lastOf(await told('closed')), lastOf(pairsOf(events, tumbling)))
    assert.deepEqual(lastOf(await told('sessions')), sessionsOf(events))
    assert.equal(engine.dropped('late'), 0)
  })
