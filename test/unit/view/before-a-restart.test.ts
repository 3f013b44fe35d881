/** A restart loses the topics of an embedded broker in memory: advice that leads to one begins with that, and other advice does not. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { diagnose } from '../../../src/view/diagnosis/diagnose.ts'
import type { Facts } from '../../../src/view/diagnosis/facts.ts'
import { healthy, now, partition } from './facts.ts'

const record = { topic: 'in', partition: 0, offset: 7 }
const poison = { code: 'PROCESSING_FAILED', message: 'it threw', restartHelps: false, record }
const failed = { code: 'LANE_FAILED', message: 'a lane has ended', restartHelps: true }
const unheard = { ...partition, watermarkMs: null, quietSinceMs: now - 60_000 }
const alignment: Facts['alignment'] = {
  group: 'both',
  partition: 'in:0',
  sinceMs: now - 60_000,
  emptyLaggards: ['in:1'],
}

const withRestart: ReadonlyArray<readonly [code: string, facts: Partial<Facts>]> = [
  ['POISON_RECORD', { state: 'FAILED', failure: poison }],
  ['FAILED', { state: 'FAILED', failure: failed }],
  ['ALIGNMENT_HELD', { alignment, partitions: [partition, { ...unheard, partition: 1 }] }],
  ['PAUSED', { state: 'PAUSED', pausedBy: { who: 'somebody', sinceMs: now } }],
]

function adviceOf(facts: Partial<Facts>, address: string): readonly [code: string, next: string] {
  const [first] = diagnose(now, { ...healthy, broker: { ...healthy.broker, address }, ...facts })
  return [first?.code ?? '', first?.next ?? '']
}

const warning = /^Do not restart this process, .+ a restart loses all that is in them\. /

describe('advice that leads to a restart', () => {
  for (const [code, facts] of withRestart) {
    test(`of ${code} begins with what a restart loses, where it loses something`, () => {
      const [found, next] = adviceOf(facts, 'embedded:')
      assert.equal(found, code)
      assert.match(next, warning)
      // Who may roll a release back is another one then.
      const isTheirs = code === 'POISON_RECORD'
      assert.equal(adviceOf(facts, 'embedded:/data')[1] === next.replace(warning, ''), !isTheirs)
      if (isTheirs) assert.doesNotMatch(next, /roll that back first/)
      assert.doesNotMatch(adviceOf(facts, 'broker:9092')[1], warning)
    })
  }

  test('is not what a standby is told', () => {
    const [code, next] = adviceOf({ state: 'STANDBY', ha: null }, 'embedded:')
    assert.equal(code, 'STANDBY')
    assert.doesNotMatch(next, /restart/)
  })
})

test('of an engine that hangs no partition is said to hold event time: nothing is read, and nothing left out as idle', () => {
  const quiet = { ...unheard, idlenessTimeoutMs: 1000, doneSinceMs: now - 60_000 }
  const codes = (engineSilentMs: number): string[] =>
    diagnose(now, {
      ...healthy,
      stateSinceMs: now - 120_000,
      partitions: [partition, { ...quiet, partition: 1 }],
      engineSilentMs,
    }).map(({ code }) => code)
  assert.deepEqual(codes(50), ['WATERMARK_HELD'])
  assert.deepEqual(codes(59_000), ['ENGINE_SILENT'])
})
