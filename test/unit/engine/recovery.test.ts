/** What follows from a failure: a restart in place, or the end, and whether anybody has to wait for the coordinator. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { VirtualClock } from '../../../src/base/clock.ts'
import { BrokerError } from '../../../src/broker/port.ts'
import { EngineError, type ErrorCode, toWireError } from '../../../src/base/errors.ts'
import type { EngineOptions } from '../../../src/engine/engine-options.ts'
import type { EngineFact } from '../../../src/engine/protocol.ts'
import { Recovery } from '../../../src/engine/recovery/recovery.ts'
import { Runs } from '../../../src/engine/run.ts'
import type { StandbyRole } from '../../../src/engine/standby-role.ts'

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function stage(maxRestarts: number, role?: { waits: boolean; readonly following: boolean }) {
  const runs = new Runs()
  const facts: EngineFact[] = []
  let reopened = 0
  let hasEnded = false
  const layout = { sourceTopics: [], sinkTopics: [], stores: [], nodes: 0, subtopologies: 0 }
  const after = (_: number, call: () => void): (() => void) => {
    call()
    return () => undefined
  }
  const options = {
    settings: { maxRestarts, restartWindowMs: 60_000, transactionTimeoutMs: 60_000 },
    clock: new VirtualClock(),
    timers: { after, soon: queueMicrotask },
    layout,
    counters: new Float64Array(200),
    fact: (fact: EngineFact) => facts.push(fact),
  }
  const recovery = new Recovery(options as unknown as EngineOptions, {
    ended: () => hasEnded,
    commits: () => 0,
    aborted: () => undefined,
    transactionMs: () => 0,
    closeRun: async () => runs.next(),
    connected: () => undefined,
    role: () => role && ({ ...role, faultSeen: () => undefined } as unknown as StandbyRole),
    topics: () => undefined,
    reopen: async () => {
      reopened++
      recovery.restarts.over()
    },
    halt: () => {
      hasEnded = true
    },
    leaveGroup: () => undefined,
    tell: (fact) => facts.push(fact),
  })
  const breaks = async (code: ErrorCode): Promise<void> => {
    const error = toWireError(new EngineError(code, 'it broke'))
    recovery.laneFault(runs.current, { type: 'fault', lane: 0, run: runs.current.number, error })
    await settled()
  }
  const failed = (): unknown[] =>
    facts.flatMap((fact) => (fact.type === 'failed' ? [[fact.error.code, fact.restartHelps]] : []))
  return { recovery, breaks, failed, facts, reopened: () => reopened }
}

describe('an embedded broker that has stopped', () => {
  test('is the end, and a restart of the process helps: it was no permission that was missing', async () => {
    const { recovery, failed } = stage(3)
    recovery.failed(new BrokerError('KAFKA_STORAGE_ERROR', 'The embedded broker stopped.', 'config'))
    await settled()
    assert.deepEqual(failed(), [['BROKER_STOPPED', true]])
  })
})

describe('a lane that fails', () => {
  test('makes its engine restart in place', async () => {
    for (const role of [undefined, { waits: false, following: false }]) {
      const { breaks, failed, reopened } = stage(3, role)
      await breaks('STORE_CORRUPT')
      assert.deepEqual([reopened(), failed()], [1, []])
    }
  })

  test('begins nothing while its pod waits for the coordinator: another one may have taken over', async () => {
    const role = { waits: true, following: false }
    const { breaks, facts, reopened } = stage(3, role)
    await breaks('STORE_CORRUPT')
    assert.deepEqual([reopened(), facts], [0, []])
    role.waits = false
    await breaks('STORE_CORRUPT')
    assert.equal(reopened(), 1)
  })

  test('is the end where no restart is left, and one of the process may help', async () => {
    const { breaks, failed, reopened } = stage(1)
    await breaks('LANE_FAILED')
    await breaks('LANE_FAILED')
    assert.deepEqual([reopened(), failed()], [1, [['RESTARTS_EXHAUSTED', true]]])
  })

  test('at what a restart of the process would only repeat is the end, and says so', async () => {
    for (const code of ['PROCESSING_FAILED', 'CHANGELOG_LOST', 'FENCED'] as const) {
      const { breaks, failed, reopened } = stage(3)
      await breaks(code)
      assert.deepEqual([reopened(), failed()], [0, [[code, false]]])
    }
  })
})
