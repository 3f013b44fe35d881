import type { HaMetrics } from '../../../src/ha/contract.ts'
import type { HaHistory, HaPeer, HaStatus } from '../../../src/http/ha-seam.ts'

export const readyPeer: HaPeer = {
  podId: 'pod-b',
  role: 'STANDBY',
  state: 'READY_STANDBY',
  replicationLagRecords: 3,
  replicationLagMs: 20,
  diskFull: false,
  commandsRefused: 0,
  generation: 2,
  freshnessMs: 400,
  failoverPriority: 1,
  restarting: false,
}

/** This pod is the active one, `pod-b` is ready to take over. */
export const standby: HaStatus = {
  selfPodId: 'pod-a',
  selfRole: 'ACTIVE',
  selfState: 'ACTIVE',
  selfRestarting: false,
  replicationLagRecords: 0,
  replicationLagMs: 0,
  tailFreshnessMs: 120,
  tailCaughtUp: true,
  readyStandbyCount: 1,
  desiredStandbys: 1,
  redundancyBelowDesired: false,
  tokenEpoch: 7,
  tokenHolder: 'pod-a',
  restartRequired: null,
  peers: [readyPeer],
  notReady: null,
  failoverPaused: false,
  selfFailoverPriority: 100,
  commands: [],
}

export const sampleHistory: HaHistory = {
  events: [
    {
      at: '2026-03-01T10:00:00.000Z',
      event: 'TAKEOVER',
      podId: 'pod-a',
      tokenEpoch: 7,
      cause: 'PROMOTE',
      why: 'pod pod-b gave the token up',
      commandOffset: 4711,
      issuer: 'pod-b',
      from: '10.0.0.3',
    },
    {
      at: null,
      event: 'PAUSE',
      podId: null,
      tokenEpoch: 0,
      cause: null,
      why: 'failover is paused: nobody takes over by itself',
      commandOffset: 12,
      issuer: 'pod-a',
      from: null,
    },
  ],
}

export const withPeer = (over: Partial<HaPeer>, self: Partial<HaStatus> = {}): HaStatus => ({
  ...standby,
  ...self,
  peers: [{ ...readyPeer, ...over }],
})

export const haCounts: HaMetrics = {
  promotions: { FAILOVER: 1, SWITCH: 4, PROMOTE: 2, BOOT: 0 },
  lastPromotionMs: 140,
  handOvers: 6,
  stepDowns: 1,
  rollbacks: 2,
  isolations: 3,
  commandResults: { DONE: 6, REJECTED: 2, EXPIRED: 1 },
  badRecords: 5,
  heartbeatsSent: 900,
  heartbeatAckAgeMs: 250,
}

/** A coordinator as the metrics see it. */
export const haGroup = { status: (): HaStatus => standby, metrics: (): HaMetrics => haCounts }
