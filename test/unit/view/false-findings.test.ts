/** What is not to be found: lanes that have little to do, time in which nobody here could have heard an answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Facts } from '../../../src/view/diagnosis/facts.ts'
import { codesOf, healthy, lane, now, partition } from './facts.ts'

test('counts no time in which this process stood still against a broker, another process, or a function', () => {
  const call = { kind: 'fetch', what: 'fetching', sinceMs: now - 20_000 } as const
  const node = { id: 1, address: 'kafka:9092', connected: true, sinceMs: 0, lastError: null, calls: [call] }
  const stuck = { ...lane, stepSinceMs: now - 20_000, longestStepMs: 10 }
  const facts: Facts = { ...healthy, broker: { ...healthy.broker, nodes: [node] }, lanes: [stuck] }
  const found = (wokeMs: number | undefined): string[] => codesOf({ ...facts, wokeMs })
  assert.deepEqual(found(undefined), ['LANE_DOES_NOT_RETURN', 'BROKER_GONE'])
  assert.deepEqual(found(now - 1000), [])
  assert.deepEqual(found(now - 9000), ['LANE_DOES_NOT_RETURN', 'BROKER_GONE'])
})

test('does not call a lane slow that has nothing to do for most of the time', () => {
  const little = { ...lane, rate: 17, busySinceMs: now - 9000 }
  const partitions = [{ ...partition, lag: 500 }]
  assert.deepEqual(codesOf({ lanes: [{ ...little, busyShare: 0.3 }], partitions }), [])
  assert.deepEqual(codesOf({ lanes: [{ ...little, busyShare: 0.9 }], partitions }), ['LANE_SLOW'])
})

test('does not tell anew, again and again, of a lane that is about as slow as the limit', () => {
  const about = { lanes: [{ ...lane, rate: 60, busySinceMs: now - 9000 }], partitions: [{ ...partition, lag: 250 }] }
  assert.deepEqual(codesOf(about), [])
  assert.deepEqual(codesOf({ ...about, slowBefore: new Set([lane.lane]) }), ['LANE_SLOW'])
  assert.deepEqual(codesOf({ ...about, slowBefore: new Set(['lane-7']) }), [])
})
