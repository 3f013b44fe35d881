/** What a restart in place costs: failures are counted, slowness and a broker out of reach are not. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { VirtualClock } from '../../../src/base/clock.ts'
import { EngineError } from '../../../src/base/errors.ts'
import { BrokerError } from '../../../src/broker/port.ts'
import type { EngineOptions } from '../../../src/engine/engine-options.ts'
import { Restarts } from '../../../src/engine/recovery/restarts.ts'
import { Runs } from '../../../src/engine/run.ts'

const timeoutMs = 10_000

function stage(
  transactionMs = 0,
  steppedDown = false,
  laneFaults = 0,
): { restarts: Restarts; ran: () => number; exhausted: string[] } {
  const runs = new Runs()
  let ran = 0
  const exhausted: string[] = []
  const clock = new VirtualClock()
  const layout = { sourceTopics: [], sinkTopics: [], stores: [], nodes: 0, subtopologies: 0 }
  const settings = { maxRestarts: 2, restartWindowMs: 60_000, transactionTimeoutMs: timeoutMs }
  const after = (_: number, call: () => void): (() => void) => {
    call()
    return () => undefined
  }
  const timers = { after, soon: queueMicrotask }
  const options = { settings, clock, timers, layout, counters: new Float64Array(200), fact: () => undefined }
  const restarts: Restarts = new Restarts(options as unknown as EngineOptions, {
    ended: () => false,
    commits: () => 0,
    mayRestart: () => true,
    transactionMs: () => transactionMs,
    aborted: () => undefined,
    // A pod that steps down while lanes let go begins the next run by itself.
    closeRun: async () => {
      const next = runs.next()
      if (steppedDown) runs.next()
      // A lane that has let go goes on writing its stores.
      if (laneFaults-- > 0) await restarts.laneFailed(new EngineError('STORE_CORRUPT', 'the disk broke'))
      return next
    },
    reopen: async () => {
      ran++
      restarts.over()
    },
    fail: (error) => exhausted.push(String(error)),
    failed: (error) => exhausted.push(String(error)),
    connected: () => undefined,
    exhausted: async (error) => void exhausted.push(error.code),
    tell: () => undefined,
  })
  return { restarts, ran: () => ran, exhausted }
}

async function again(restarts: Restarts, cause: unknown, times = 5): Promise<void> {
  for (let i = 0; i < times; i++) await restarts.begin(cause, false)
}

describe('restarts in place', () => {
  test('that a failure brings about are used up', async () => {
    const { restarts, exhausted, ran } = stage()
    await again(restarts, new EngineError('LANE_FAILED', 'it broke'), 3)
    assert.equal(ran(), 2)
    assert.deepEqual(exhausted, ['RESTARTS_EXHAUSTED'])
  })

  test('end where the pod has stepped down meanwhile: it begins the next run by itself', async () => {
    const { restarts, exhausted, ran } = stage(0, true)
    await restarts.begin(new EngineError('LANE_FAILED', 'it broke'), false)
    assert.deepEqual([ran(), exhausted], [0, []])
  })

  test('begin once more where a lane fails before the next run is opened: it would never come back', async () => {
    const { restarts, ran } = stage(0, false, 1)
    await restarts.begin(new EngineError('LANE_FAILED', 'it broke'), false)
    assert.equal(restarts.budget.snapshot(0).used, 2)
    assert.equal(ran(), 1)
    const { restarts: one, ran: ranOnce } = stage()
    await one.begin(new EngineError('LANE_FAILED', 'it broke'), false)
    assert.deepEqual([one.budget.snapshot(0).used, ranOnce()], [1, 1])
  })

  test('that a transaction is aborted early brings about are used up', async () => {
    const { restarts, exhausted } = stage(timeoutMs / 2)
    await again(restarts, new EngineError('TRANSACTION_ABORTED', 'the broker gave it up'), 3)
    assert.deepEqual(exhausted, ['RESTARTS_EXHAUSTED'])
  })

  const slowness: ReadonlyArray<readonly [string, number, unknown]> = [
    ['a transaction that grew too old', timeoutMs, new EngineError('TRANSACTION_ABORTED', 'the broker gave it up')],
    ['a group that went on without the process', 0, new EngineError('TRANSACTION_ABORTED', 'on', { late: true })],
    ['a broker out of reach', 0, new BrokerError('UNREACHABLE', 'nobody answers')],
  ]
  for (const [what, transactionMs, cause] of slowness) {
    test(`that ${what} brings about are not counted: no pod gives its role away for them`, async () => {
      const { restarts, exhausted, ran } = stage(transactionMs)
      await again(restarts, cause)
      assert.equal(ran(), 5)
      assert.deepEqual(exhausted, [])
      assert.equal(restarts.budget.snapshot(0).used, 0)
    })
  }
})
