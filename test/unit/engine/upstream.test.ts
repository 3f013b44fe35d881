/** What the group has done, told from what is committed and where topics end, with two sub-topologies and a topic between. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { partitionKey } from '../../../src/base/ids.ts'
import { Upstream } from '../../../src/engine/input/repartition/upstream.ts'
import type { TopologyPlan } from '../../../src/topology/plan.ts'

const plan = {
  levels: 2,
  sources: [
    { index: 0, kind: 'topics', subtopology: 0, boundary: undefined },
    { index: 1, kind: 'boundary', subtopology: 1, boundary: 0 },
  ],
  boundaries: [{ index: 0, fromSubtopology: 0, toSubtopology: 1, toSource: 1, heldBackMs: 0, isCircular: false }],
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
  at.look({ committed: new Map(reached), ends: new Map(flat(ends)), now, isWithheld })
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
  // What an open transaction holds back may have come before.
  assert.equal(knownBehind(12, 12, 700, true), undefined)
  assert.equal(knownBehind(12, 12, 800), undefined)
  assert.equal(knownBehind(12, 12, 900), undefined)
  assert.equal(knownBehind(12, 12, 1000), 800)
})
