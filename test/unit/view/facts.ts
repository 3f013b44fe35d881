/** What is known of an application that has nothing to complain of: tests change what they are about. */
import { diagnose } from '../../../src/view/diagnosis/diagnose.ts'
import type { Facts, LaneFacts, PartitionFacts } from '../../../src/view/diagnosis/facts.ts'

export const now = 1_800_000_000_000

export const lane: LaneFacts = {
  lane: 'lane-0',
  stepSinceMs: null,
  node: 'work',
  function: null,
  blocked: false,
  at: { topic: 'in', partition: 0, offset: 7 },
  call: null,
  longestStepMs: 0,
  longestCallMs: 0,
  callMs: 0,
  queuedRecords: 0,
  rate: null,
  busySinceMs: null,
  hotKey: null,
}

export const partition: PartitionFacts = {
  topic: 'in',
  partition: 0,
  lag: 0,
  committedOffset: 7,
  withheld: 0,
  withheldSinceMs: null,
  withheldBy: null,
  buffered: 0,
  bufferCapacity: 1000,
  fullSinceMs: null,
  watermarkMs: now,
  idle: false,
  idlenessTimeoutMs: 0,
  quietSinceMs: now,
  longestQuietMs: 0,
  doneSinceMs: now,
  ahead: null,
}

export const healthy: Facts = {
  applicationId: 'app',
  state: 'RUNNING',
  stateSinceMs: now - 60_000,
  failure: null,
  earlier: [],
  pausedBy: null,
  restore: [],
  restoreRate: null,
  broker: { connected: true, sinceMs: now - 60_000, address: 'broker:9092', lastError: null, nodes: [] },
  engineSilentMs: 50,
  missedMs: 0,
  lateMs: 0,
  dispatchedAtMs: now,
  diskFull: null,
  lanes: [lane, { ...lane, lane: 'lane-1' }],
  partitions: [partition, { ...partition, partition: 1 }],
  usesEventTime: true,
  orderWait: null,
  globalWatermarkMs: now,
  alignment: null,
  lateRecords: 0,
  commit: {
    intervalMs: 100,
    phase: 'IDLE',
    phaseSinceMs: now,
    outstandingLanes: [],
    owed: {},
    last: [],
    restarts: { used: 0, max: 3, windowMs: 300_000, causes: [] },
    restartsSinceMs: null,
  },
  groupChanges: [],
  identity: null,
  license: { status: 'NO_KEY', counts: true, sinceMs: now },
  ha: null,
}

/** What is found, what something else brings about in brackets. */
export const codesOf = (facts: Partial<Facts>): string[] =>
  diagnose(now, { ...healthy, ...facts }).map(({ code, explained }) => (explained ? `(${code})` : code))
