/** What the engine tells of itself, to those who compare it with the wall clock. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { VirtualClock } from '../../../src/base/clock.ts'
import { engineBlockLength, newBlock } from '../../../src/base/counters.ts'
import type { EngineOptions } from '../../../src/engine/engine-options.ts'
import type { EngineFact } from '../../../src/engine/protocol.ts'
import { type EngineParts, Reports } from '../../../src/engine/reports.ts'
import type { BarrierSnapshot } from '../../../src/view/view.ts'

/** An engine that asks the broker to end a transaction, and gets no answer. */
function inCommit() {
  const clock = new VirtualClock(1_700_000_000_000)
  const layout = { sourceTopics: [], sinkTopics: [], stores: [], nodes: 0, subtopologies: 0 }
  const barriers: Array<BarrierSnapshot | null> = []
  const options = {
    settings: { bufferedMaxBytes: 0, plan: { stores: [] } },
    broker: { connected: true },
    clock,
    layout,
    counters: newBlock(engineBlockLength(layout)),
    laneCounters: [],
    nodeNames: [],
    fact: (fact: EngineFact) => {
      if (fact.type === 'snapshot') barriers.push(fact.snapshot.barriers)
    },
  }
  const reports = new Reports(options as unknown as EngineOptions)
  clock.advance(100)
  const [startedAtMs, openSince] = [clock.monotonic(), clock.monotonic()]
  clock.advance(20)
  const phase = { phase: 'IN_TX_COMMIT', epoch: 3, trigger: 'interval', phaseSinceMs: clock.monotonic() }
  const parts = {
    committer: {
      machine: { ...phase, startedAtMs, queued: false, outstandingLanes: [] },
      commitId: '1.3',
      heldBytes: 0,
    },
    producer: { transaction: { producerId: '7', producerEpoch: 0, partitions: 1, bytes: 9, openSince } },
    restarts: { budget: { snapshot: () => ({ used: 0, max: 5, windowMs: 60_000, causes: [], codes: [] }) } },
    changelogNext: new Map(),
    ready: true,
  }
  const agesMs = (): unknown => {
    reports.tick(() => parts as unknown as EngineParts)
    const { phaseSinceMs, startedAtMs: started, transaction } = barriers.at(-1) ?? assert.fail('nothing was published')
    const age = (sinceMs: number | null | undefined): number => clock.now() - (sinceMs ?? assert.fail('no instant'))
    return { phase: age(phaseSinceMs), commit: age(started), transaction: age(transaction?.openSinceMs) }
  }
  return { clock, agesMs }
}

describe('a commit under way', () => {
  test('is as old as it is, whatever the wall clock is set to meanwhile', () => {
    for (const jumpMs of [60_000, -60_000]) {
      const { clock, agesMs } = inCommit()
      clock.advance(200)
      assert.deepEqual(agesMs(), { phase: 200, commit: 220, transaction: 220 })
      clock.jump(jumpMs)
      clock.advance(200)
      assert.deepEqual(agesMs(), { phase: 400, commit: 420, transaction: 420 })
    }
  })
})

describe('a disk that is full', () => {
  test('is told to the coordinator of high availability when it begins, names another store, and ends', () => {
    const tell = (ha: boolean): unknown[] => {
      const told: EngineFact[] = []
      const options = {
        settings: { ha },
        clock: new VirtualClock(0),
        fact: (fact: EngineFact) => told.push(fact),
      }
      const reports = new Reports(options as unknown as EngineOptions)
      for (const [lane, sentence] of [
        [0, 'no room for a'],
        [0, 'no room for a'],
        [1, 'no room for b'],
        [0, null],
        [1, null],
        [1, null],
      ] as const)
        reports.diskFull(lane, sentence)
      return told.flatMap((fact) => (fact.type === 'disk-full' ? [fact.sentence] : []))
    }
    assert.deepEqual(tell(true), ['no room for a', 'no room for b', null])
    assert.deepEqual(tell(false), [])
  })
})
