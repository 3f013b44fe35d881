/**
 * The seam between the coordinator of high availability and what surrounds it. `startRuntime` makes one coordinator per
 * pod on the control thread, hands it the engine's facts, and hands its commands to the engine.
 *
 * Order of a start: `start()` (the engine may start at the same time, as a standby), facts flow in through `engineFact`.
 * Order of a stop: `stop()` first, and only then the engine: the coordinator hands over to a ready standby.
 */
import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import type { Timers } from '../base/timers.ts'
import type { BrokerPort } from '../broker/port.ts'
import type { HaCommandToEngine, HaFact } from '../engine/ha-contract.ts'
import type { EngineFact } from '../engine/protocol.ts'
import type { EngineError } from '../base/errors.ts'
import type { TopologyState } from '../topology/changes/diff.ts'
import type { HaView } from './shown/view.ts'

export interface HaSettings {
  readonly applicationId: string
  /** Group whose committed offsets carry the commit tags; the application's id where nothing else is said. */
  readonly groupId: string
  readonly podId: string
  readonly desiredStandbys: number
  readonly failoverPriority: number
  readonly heartbeatIntervalMs: number
  readonly selfFenceTimeoutMs: number
  readonly failoverTimeoutMs: number
  readonly handoffTimeoutMs: number
  readonly commandTtlMs: number
  readonly claimStaggerMs: number
  readonly minPromotionIntervalMs: number
  readonly readyMaxLagRecords: number
  readonly readyMaxLagMs: number
  readonly allowUnreadyFailover: boolean
  readonly requireSafeTopic: boolean
  readonly commandSecret: string | null
  /** Pods whose topologies are the same can take over from one another; where they differ, the shapes tell. */
  readonly topologyHash: string
  /** See `topology-shape.ts`. */
  readonly topologyShape: ReadonlyMap<string, string>
  /** Hash of the value of every key of scope `application`, by key: pods compare those that both know. */
  readonly configHashes: Readonly<Record<string, string>>
  /** This build's name, for people. */
  readonly build: string
}

export interface HaOptions {
  /** A client of its own: no call of the engine's may stand in the way of a heartbeat. The caller closes it. */
  readonly broker: BrokerPort
  readonly settings: HaSettings
  readonly engine: (command: HaCommandToEngine) => void
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: (level: 'debug' | 'info' | 'warn' | 'error', message: string) => void
  /**
   * This pod cannot go on: another one runs under its id, or the topic is refused. The process should end; told once.
   * An active engine was told to step down before.
   */
  readonly fail: (error: EngineError) => void
  /** Role, state or readiness changed. */
  readonly changed?: () => void
}

export type HaRole = 'ACTIVE' | 'STANDBY'
export type HaState =
  | 'JOINING'
  | 'BOOTSTRAPPING'
  | 'CATCHING_UP'
  | 'READY_STANDBY'
  | 'PROMOTING'
  | 'ACTIVE'
  | 'DEMOTING'
  | 'ISOLATED'
  | 'FAILED'
  | 'STOPPING'

/** Running figures since the start of this pod; the rest of what metrics show is in `status()`. */
export interface HaMetrics {
  /** Promotions of this pod that ended as ACTIVE, by cause. */
  readonly promotions: Readonly<Record<'FAILOVER' | 'SWITCH' | 'PROMOTE' | 'BOOT', number>>
  /** Duration of the last promotion of this pod, from its claim to ACTIVE; null before the first. */
  readonly lastPromotionMs: number | null
  readonly handOvers: number
  readonly stepDowns: number
  readonly rollbacks: number
  /** Times this pod isolated itself. */
  readonly isolations: number
  /** Results of commands that this pod decided, as acting pod. */
  readonly commandResults: Readonly<Record<'DONE' | 'REJECTED' | 'EXPIRED', number>>
  /** Records of the coordinator topic that could not be read, or whose signature was wrong. */
  readonly badRecords: number
  readonly heartbeatsSent: number
  /** Age of the newest own heartbeat that came back through the topic. */
  readonly heartbeatAckAgeMs: number
}

export interface HaCoordinator extends HaView {
  /** Where the pod stands now. */
  readonly role: HaRole
  readonly state: HaState
  /** Token epoch this pod runs under; 0 unless it is the holder. */
  readonly tokenEpoch: number
  /**
   * Makes or checks the coordinator topic and reads it to its end; waits as long as the broker is unreachable.
   * Rejects with an `EngineError` where the topic is not safe and `ha.require-safe-topic` is on, or is not permitted.
   */
  start(): Promise<void>
  engineFact(fact: EngineFact | HaFact): void
  /** Why a pause, or its end, would be lost by now, in words for the operator; null where `pauseIntent` is followed. */
  tooLateToPause(): string | null
  /** The operator's will on this pod, while it is active: published, and followed by whoever takes over. */
  pauseIntent(paused: boolean): void
  /**
   * Hands over (an active drains, commits and releases the token, with a ready standby as its target where there is
   * one), says goodbye and ends. Resolves then, or when the time is over, whatever was reached. Never rejects.
   */
  stop(deadlineMs: number): Promise<void>
  /** Ends at once without a word, as a crash would. */
  abandon(): void
  metrics(): HaMetrics
}

/** `haSettings(config, …)` in `settings.ts` makes the settings of the configuration. */
export interface HaIdentity {
  readonly applicationId: string
  readonly groupId: string
  /** Used where `ha.pod-id` is not set. */
  readonly hostname: string
  readonly topologyHash: string
  readonly topologyState: TopologyState
  readonly build: string
}

/** Name of the coordinator topic. */
export function coordinatorTopic(applicationId: string): string {
  return `${applicationId}-ha`
}
