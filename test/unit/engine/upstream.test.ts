/** What the group has done, told from what is committed and where topics end, with two sub-topologies and a topic between. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PartitionKey, partitionKey } from '../../../src/base/ids.ts'
import { shortName } from '../../../src/engine/commit/held-input.ts'
import { Upstream } from '../../../src/engine/input/repartition/upstream.ts'
import type { TopologyPlan } from '../../../src/topology/plan.ts'

const way = { fromSubtopology: 0, toSubtopology: 1, toSource: 1 }
const plan = {
  // As through topics.
  levels: 1,
  sources: [
    { index: 0, kind: 'topics', subtopology: 0, boundary: undefined },
    { index: 1, kind: 'boundary', subtopology: 1, boundary: 0 },
  ],
  boundaries: [{ index: 0, ...way, topic: 'between', sourcesBefore: [0], heldBackMs: 0, isCircular: false }],
} as unknown as TopologyPlan

const topics = ['in', 'between']

function upstream(): Upstream {
  return new Upstream(
    plan,
    ({ index }) => [0, 1].map((partition) => ({ topic: topics[index] as string, partition })),
    0,
  )
}

type Offsets = Readonly<Record<'in' | 'between', readonly [number, number]>>

/** A round that finds these offsets committed, and topics that end there. */
function look(at: Upstream, committed: Offsets, ends: Offsets, now = 0, isWithheld = false): void {
  const flat = (offsets: Offsets) =>
    Object.entries(offsets).flatMap(([topic, each]) =>
      each.map((offset, p) => [partitionKey(topic, p), offset] as const),
    )
  const reached = flat(committed).map(([key, offset]) => [key, { offset, maxTimestamp: offset, idle: false }] as const)
  const withheld = new Set(isWithheld ? [partitionKey('in', 1)] : [])
  at.look({ committed: new Map(reached), ends: new Map(flat(ends)), now, withheld })
}

test('a partition between sub-topologies that nobody reads, its owner just gone, keeps the group from being done', () => {
  const at = upstream()
  const ends: Offsets = { in: [10, 10], between: [5, 5] }
  for (let round = 0; round < 5; round++) {
    look(at, { in: [10, 10], between: [5, 2] }, ends)
    assert.equal(at.isAtRest, false)
  }
  look(at, { in: [10, 10], between: [5, 5] }, ends)
  assert.equal(at.isAtRest, true)
})

test('input that came through in this very round has still to be read behind its topic', () => {
  const at = upstream()
  const before: Offsets = { in: [0, 0], between: [0, 0] }
  look(at, before, { in: [10, 10], between: [0, 0] })
  look(at, { in: [10, 10], between: [0, 0] }, { in: [10, 10], between: [5, 5] })
  assert.equal(at.isAtRest, false, 'the topic between got what was not there a round ago')
  look(at, { in: [10, 10], between: [0, 0] }, { in: [10, 10], between: [5, 5] })
  assert.equal(at.isAtRest, false)
  look(at, { in: [10, 10], between: [5, 5] }, { in: [10, 10], between: [5, 5] })
  assert.equal(at.isAtRest, true)
})

test('of the partitions that others have, the slowest is found by what it has come to, its next record included', () => {
  const at = upstream()
  const own = new Set([partitionKey('in', 0)])
  const theirs = partitionKey('in', 1)
  const round = (offset: number, end: number, comesTo?: number): void => {
    const reached = { offset, maxTimestamp: offset, idle: false, ...(comesTo !== undefined && { comesTo }) }
    const mine = { offset: 1, maxTimestamp: 1, idle: false }
    const ends = new Map([
      [theirs, end],
      [partitionKey('in', 0), 100],
    ])
    at.look({
      committed: new Map([...own].map((key) => [key, mine] as const).concat([[theirs, reached]])),
      ends,
      now: 0,
    })
  }
  round(10, 20)
  assert.deepEqual(at.slowestOfOthers(0, own), { key: theirs, reachedMs: 10 })
  round(10, 20, 5000)
  assert.deepEqual(at.slowestOfOthers(0, own), { key: theirs, reachedMs: 5000 })
  round(20, 20)
  assert.equal(at.slowestOfOthers(0, own), undefined, 'it has done all that there was')
  assert.equal(at.slowestOfOthers(0, new Set([theirs]))?.key, partitionKey('in', 0))
})

test('what lay in the input at a moment has come through once all that it ended with then is committed', () => {
  const at = upstream()
  const between = plan.sources[1] as (typeof plan.sources)[number]
  const knownBehind = (done: number, end: number, now: number, isWithheld = false): number | undefined => {
    look(at, { in: [done, done], between: [0, 0] }, { in: [end, end], between: [done, done] }, now, isWithheld)
    return at.knownAt(between)
  }
  assert.equal(knownBehind(10, 10, 100), undefined)
  assert.equal(knownBehind(10, 10, 200), undefined)
  // Two rounds ago is the last moment of which it is sure that nothing came behind the ends that were looked up.
  assert.equal(knownBehind(10, 10, 300), 100)
  assert.equal(knownBehind(10, 12, 400), 200)
  assert.equal(knownBehind(11, 12, 500), undefined)
  assert.equal(knownBehind(12, 12, 600), 400)
  // What an open transaction withholds had come: it is known to be through once it is, and not before.
  assert.equal(knownBehind(12, 12, 700, true), 500)
  assert.equal(knownBehind(12, 12, 800, true), undefined)
  assert.equal(knownBehind(12, 12, 900), undefined)
  assert.equal(knownBehind(12, 15, 1000), 800)
  assert.equal(knownBehind(14, 15, 1100), undefined)
})

test('what is under way between two topics has not come through to the second', () => {
  const third = {
    levels: 1,
    sources: [...plan.sources, { index: 2, kind: 'boundary', subtopology: 2, boundary: 1 }],
    boundaries: [
      ...plan.boundaries,
      { index: 1, fromSubtopology: 1, toSubtopology: 2, toSource: 2, topic: 'last', sourcesBefore: [1] },
    ],
  } as unknown as TopologyPlan
  const at = new Upstream(
    third,
    ({ index }) => [{ topic: ['in', 'between', 'last'][index] as string, partition: 0 }],
    0,
  )
  let now = 0
  /** Committed of the input and of the topic between, which ends there. */
  const knownBehind = (done: number, between: number, end: number): number | undefined => {
    const keys = ['in', 'between'].map((topic) => partitionKey(topic, 0)) as [PartitionKey, PartitionKey]
    const reached = (offset: number) => ({ offset, maxTimestamp: 0, idle: false })
    const committed = new Map([[keys[0], reached(done)] as const, [keys[1], reached(between)] as const])
    now += 100
    at.look({ committed, ends: new Map([[keys[0], 10] as const, [keys[1], end] as const]), now })
    return at.knownAt(third.sources[2] as (typeof third.sources)[number])
  }
  for (let round = 0; round < 4; round++) assert.equal(knownBehind(0, 0, 0), undefined, 'the first is not done with it')
  assert.equal(knownBehind(10, 0, 5), undefined, 'it lies in the topic between')
  assert.equal(knownBehind(10, 0, 5), undefined)
  assert.equal(knownBehind(10, 5, 5), 400)
})

test('what was held back at the last moment of which all is known is held back until the next one is', () => {
  const at = upstream()
  const heldUntil = (held: number | undefined): number => {
    const told = held === undefined ? undefined : new Map([[shortName('between'), held]])
    const reached = { offset: 0, maxTimestamp: 0, idle: false, held: told }
    at.look({ committed: new Map([[partitionKey('in', 1), reached]]), ends: new Map(), now: 0 })
    return at.heldBefore(0)
  }
  assert.deepEqual([undefined, 7, 9, undefined, undefined, undefined].map(heldUntil), [
    ...[Number.POSITIVE_INFINITY, 7, 7, 7, 9],
    Number.POSITIVE_INFINITY,
  ])
})

test('a topic that its own readers write has the time of those that feed it, or of the others beside it while these are idle', () => {
  const self = { fromSubtopology: 0, toSubtopology: 0, toSource: 1 }
  const circle = {
    levels: 1,
    sources: [
      { index: 0, kind: 'topics', subtopology: 0, boundary: undefined },
      { index: 1, kind: 'boundary', subtopology: 0, boundary: 0 },
      { index: 2, kind: 'topics', subtopology: 0, boundary: undefined },
    ],
    boundaries: [{ index: 0, ...self, topic: 'between', heldBackMs: 0, isCircular: true, fedBy: [0] }],
  } as unknown as TopologyPlan
  const names = ['in', 'between', 'beside']
  const at = new Upstream(circle, ({ index }) => [{ topic: names[index] as string, partition: 0 }], 0)
  const source = circle.sources[1] as TopologyPlan['sources'][number]
  const shown = (times: readonly [number, number, number], isIdle: boolean): number | undefined => {
    const committed = names.map((name, i) => {
      const reached = { offset: 10, maxTimestamp: times[i] as number, idle: isIdle && i === 0 }
      return [partitionKey(name, 0), reached] as const
    })
    const ends = new Map(names.map((name) => [partitionKey(name, 0), name === 'in' && isIdle ? 10 : 20]))
    at.look({ committed: new Map(committed), ends, now: 0 })
    return at.frontierOf(source).showsMs
  }
  // Neither its own records nor those beside it, which are behind, are waited for.
  assert.equal(shown([5000, 1000, 2000], false), 5000)
  assert.equal(shown([5000, 1000, 9000], true), 9000)
  // It is behind all others, yet nobody is held back until it is read further.
  for (let round = 0; round < 2; round++) assert.equal(shown([5000, 1000, 9000], false), 5000)
  assert.equal(at.slowestOfOthers(0, new Set())?.key, partitionKey('in', 0))
})
