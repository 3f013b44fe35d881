/** Records that wait for other processes of the application. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { partitionKey } from '../../../src/base/ids.ts'
import type { Clock } from '../../../src/base/clock.ts'
import { LongWait } from '../../../src/engine/input/long-wait.ts'
import { Lead } from '../../../src/engine/input/repartition/lead.ts'
import { diagnose } from '../../../src/view/diagnosis/diagnose.ts'
import type { WatermarkSnapshot } from '../../../src/view/view.ts'
import { codesOf, healthy, lane, now, partition } from './facts.ts'

const theirs = partitionKey('orders', 1)
const snapshot: WatermarkSnapshot = { globalMs: null, alignmentGroupMins: {}, alignmentBinding: null, partitions: {} }

test('a process that is ahead of another one of its group names the partition that is behind', () => {
  const found = (sinceMs: number): readonly string[] => {
    const orderWait = { held: null, awaited: theirs, byWriters: true, sinceMs }
    return diagnose(now, { ...healthy, orderWait }).map(({ code, sentence }) => `${code}: ${sentence}`)
  }
  assert.deepEqual(found(now - 9000), [])
  assert.deepEqual(found(now - 20_000), [
    'ORDER_HELD: The process is ahead of others of its group, and has waited for 20 s for the one that reads orders/1.',
  ])
})

test('what it waits for is shown while no head waits for its turn, by the wall clock', () => {
  let monotonic = 1000
  const clock: Clock = { now: () => now + monotonic, monotonic: () => monotonic }
  const wait = new LongWait(
    { clock, timers: { after: () => () => undefined, soon: () => undefined } },
    () => undefined,
    () => undefined,
  )
  const lead = new Lead({ mostBytes: 10, topics: new Map([['between', 0]]), subtopologies: 1 }, () => undefined)
  lead.othersAt(0, { key: theirs, reachedMs: 5 }, monotonic)
  assert.equal(wait.shown(snapshot, lead).orderWait, undefined)
  lead.went(0, 1, 100, 7)
  lead.wrote([{ topic: 'between', records: new Uint8Array(100), count: 1 }])
  lead.froze()
  lead.committed()
  lead.limits(monotonic)
  monotonic = 4000
  const orderWait = { held: null, awaited: theirs, byWriters: true, sinceMs: now + 1000 }
  assert.deepEqual(wait.shown(snapshot, lead).orderWait, orderWait)
  const other = { held: partitionKey('between', 0), awaited: theirs, byWriters: true, sinceMs: now }
  assert.deepEqual(wait.shown({ ...snapshot, orderWait: other }, lead).orderWait, other)
})

test('records that wait for what a slow key of the process itself has still to pass on are no standstill of their own', () => {
  const held = partitionKey('between', 0)
  const orderWait = { held, awaited: held, byWriters: true, sinceMs: now - 20_000 }
  assert.deepEqual(codesOf({ orderWait }), ['ORDER_HELD'])
  const hotKey = { hash: '0badcafe', waiting: 500, node: 'work', topic: 'in', partition: 0, sinceMs: now - 30_000 }
  const lanes = [{ ...lane, rate: 2, busySinceMs: now - 30_000, callMs: 400, hotKey }]
  const codes = codesOf({ orderWait, lanes, partitions: [{ ...partition, lag: 5000 }] })
  assert.equal(codes[0], 'HOT_KEY')
  assert.ok(codes.includes('(ORDER_HELD)'), codes.join())
})
