/**
 * What the rest of the process sees of the engine: a read-only view made of the engine's own last snapshots, and the
 * commands that operators may give. The HTTP interface, the metrics and the command line know nothing else of it.
 */
import type { CountersView } from '../base/counters.ts'
import type { PartitionKey } from '../base/ids.ts'
import type { BrokerNode, BrokerTrouble } from '../broker/port.ts'
import type { CompiledTopology } from '../topology/compiled.ts'

export const lifecycleStates = [
  'CREATED',
  'STARTING',
  'RESTORING',
  'STANDBY',
  'RUNNING',
  'DRAINING',
  'PAUSED',
  'RESTARTING',
  'STOPPING',
  'STOPPED',
  'FAILED',
] as const
export type LifecycleState = (typeof lifecycleStates)[number]

export interface StateTransition {
  readonly state: LifecycleState
  readonly from: LifecycleState
  readonly atMs: number
}

export interface StateSnapshot {
  readonly current: LifecycleState
  readonly sinceMs: number
  /** Newest first, bounded. */
  readonly history: readonly StateTransition[]
  /** Why the engine is FAILED, in one sentence. */
  readonly failure: EngineFailure | null
  /** While state is restored: what is left. */
  readonly restore: readonly RestoreProgress[]
  /** Who asked for the pause that is in force, as far as that is known, and when. */
  readonly pause?: { readonly who: string; readonly sinceMs: number } | null
}

export interface EngineFailure {
  readonly code: string
  readonly message: string
  readonly restartHelps: boolean
  /** The record at which it failed, where that is known. */
  readonly record?: { readonly topic: string; readonly partition: number; readonly offset: number }
}

export interface RestoreProgress {
  readonly store: string
  readonly partition: number
  readonly restoredRecords: number
  readonly remainingRecords: number
}

export interface PartitionWatermark {
  readonly watermarkMs: number | null
  readonly idle: boolean
  /** For how long it has been idle since it was assigned; for the metrics. */
  readonly idleTotalMs: number
  readonly lastEventTimeMs: number | null
  readonly idlenessTimeoutMs: number
  readonly alignmentGroup: string | null
  readonly alignmentHeld: boolean
  /** For how long its head has held up dispatch since it was assigned; for the metrics. */
  readonly alignmentHeldTotalMs: number
  readonly driftFromGroupMinMs: number | null
  /** Present only as the specification's 2.7 says (reading R41). */
  readonly previewWatermarkMs?: number
  readonly headHeldSinceMs?: number
  /** Those who write to it tell how far it has come: no record of its own has to come for that. */
  readonly isAnnounced?: true
  /** The record that took its watermark farthest ahead of the clock; null while it is not. */
  readonly ahead?: { readonly offset: number; readonly timestampMs: number; readonly sinceMs: number } | null
}

export interface WatermarkSnapshot {
  readonly globalMs: number | null
  /**
   * The head that waits longest for a partition of its task, or for those who write to it. `held` is null where the process
   * is ahead of the one that reads `awaited`, and waits for that.
   */
  readonly orderWait?: {
    readonly held: PartitionKey | null
    readonly awaited: PartitionKey
    readonly byWriters: boolean
    readonly sinceMs: number
  }
  readonly alignmentGroupMins: Readonly<Record<string, number>>
  readonly alignmentBinding: {
    readonly group: string
    readonly partition: PartitionKey
    readonly emptyLaggards: readonly PartitionKey[]
    readonly sinceMs: number
  } | null
  readonly partitions: Readonly<Record<PartitionKey, PartitionWatermark>>
}

export interface OffsetsSnapshot {
  readonly sources: ReadonlyArray<{
    readonly topic: string
    readonly partitions: ReadonlyArray<{
      readonly partition: number
      readonly committedOffset: number
      /** End of the log, with what open transactions hold back. */
      readonly logEndOffset: number
      /** Of that, what lies behind the first open transaction and cannot be read before it is decided. */
      readonly withheld: number
    }>
  }>
  readonly changelogs: ReadonlyArray<{
    readonly topic: string
    readonly store: string
    readonly partitions: ReadonlyArray<{ readonly partition: number; readonly committedOffset: number }>
  }>
}

/** What a rebalance changed in the group. Members as people find them: id, and host where it is known. */
export interface GroupChange {
  readonly atMs: number
  readonly came: readonly string[]
  /** `stayedMs`: null for a member that was there before this process looked. */
  readonly went: ReadonlyArray<{ readonly member: string; readonly stayedMs: number | null }>
}

/** Which process of the group has which task. Tasks are named as in `0_3`. */
export interface GroupPlaces {
  /** How many tasks each sub-topology has. */
  readonly tasks: readonly number[]
  readonly own: readonly string[]
  /** False where no process says at which address it can be asked: then nobody is told what the others have. */
  readonly isTold: boolean
  readonly others: ReadonlyArray<{ readonly address: string | null; readonly tasks: readonly string[] }>
}

export interface ConsumerSnapshot {
  readonly groupId: string
  readonly memberId: string
  readonly generationId: number
  readonly groupInstanceId: string | null
  readonly subscription: readonly string[]
  readonly lastCommitMs: number | null
  /** Members that came and went, newest first, bounded. */
  readonly changes?: readonly GroupChange[]
  /** Empty until partitions are assigned. */
  readonly assignment: Readonly<Record<PartitionKey, ConsumerBuffer>>
}

export interface ConsumerBuffer {
  readonly buffered: number
  /** Of a partition between sub-topologies: what has left the buffer, and waits for its place in the order of event time. */
  readonly sorted?: number
  readonly bufferCapacity: number
  readonly paused: boolean
}

export const commitPhases = [
  'IDLE',
  'QUEUED',
  'AWAITING_LANE_ACKS',
  'FLUSHING',
  'SENDING_OFFSETS',
  'IN_TX_COMMIT',
  'APPLYING_STORES',
  'RESOLVING_OUTCOME',
  'ABORTING',
] as const
export type CommitPhase = (typeof commitPhases)[number]

/** How a lane is getting on, from which it follows what is let in. */
export interface LanePaceSnapshot {
  /** Records that it was given and is not done with, and how many there may be. */
  readonly pendingRecords: number
  readonly mayPendRecords: number
  readonly recordsPerSecond: number
  /** The slowest call of late. */
  readonly slowestCallMs: number
}

/** Calls of one function of the application, over all lanes. */
export interface FunctionCalls {
  readonly node: string
  readonly calls: number
  readonly waiting: number
  readonly limit: number
}

export interface BarrierSnapshot {
  readonly phase: CommitPhase
  readonly commitId: string | null
  readonly epoch: number
  readonly trigger: string | null
  readonly startedAtMs: number | null
  readonly phaseSinceMs: number
  /** A further commit was asked for while this one runs. */
  readonly queued: boolean
  readonly outstandingLanes: readonly string[]
  /** Topics by the number that lanes' counters have of them. */
  readonly originTopics?: readonly string[]
  readonly lanes: ReadonlyArray<{
    readonly lane: string
    readonly acked: boolean
    readonly queuedRecords: number
    readonly lastProgressMs: number
    /** Record the lane is at, null when it has none. */
    readonly at: { readonly topic: string; readonly partition: number; readonly offset: number } | null
    readonly node: string | null
    readonly pace?: LanePaceSnapshot
  }>
  /** How long a commit is meant to wait for its lanes; null between runs. */
  readonly aimMs?: number | null
  /** Asynchronous functions with calls under way. */
  readonly functions?: readonly FunctionCalls[]
  readonly transaction: {
    readonly producerId: string
    readonly producerEpoch: number
    readonly partitions: number
    readonly bytes: number
    readonly openSinceMs: number | null
  } | null
  readonly restarts: {
    readonly used: number
    readonly max: number
    readonly windowMs: number
    readonly causes: readonly string[]
    /** Of each cause the code of its error. */
    readonly codes?: readonly string[]
  }
  /** Newest first. */
  readonly last: ReadonlyArray<{
    readonly commitId: string
    readonly outcome: 'COMMITTED' | 'ABORTED'
    readonly atMs: number
    readonly durationsMs: {
      readonly align: number
      readonly flush: number
      readonly offsets: number
      readonly endTransaction: number
      readonly apply: number
    }
  }>
}

/** Answers `/debug/threads`; see reading R33. */
export interface ThreadsSnapshot {
  readonly timestamp: string
  readonly engineThreads: ReadonlyArray<{
    readonly name: string
    readonly role: 'control' | 'engine' | 'lane' | 'broker'
    readonly state: 'RUNNABLE' | 'WAITING' | 'BLOCKED'
    readonly currentNode: string | null
    readonly stack: readonly string[]
  }>
  readonly platformThreads: ReadonlyArray<{
    readonly name: string
    readonly tid: number
    readonly state: 'RUNNABLE' | 'WAITING' | 'BLOCKED'
    readonly cpuMs: number
  }>
}

export interface EngineView {
  readonly applicationId: string
  /** Lane count in force. */
  readonly lanes: number
  /** Lanes whose thread is there. */
  readonly lanesAlive: number
  /** Null until the application's module was loaded and compiled. */
  topology(): CompiledTopology | null
  state(): StateSnapshot
  /** Each null while the engine is not initialised. */
  watermarks(): WatermarkSnapshot | null
  offsets(): OffsetsSnapshot | null
  consumer(): ConsumerSnapshot | null
  barriers(): BarrierSnapshot | null
  threads(options: { depth: number; signal?: AbortSignal }): Promise<ThreadsSnapshot>
  /** Which stores wait for room on the disk, as a sentence; null: none. Nothing is let in meanwhile. */
  diskFull(): string | null
  /** Cached: whether the last exchange with the broker went well, and since when not. */
  broker(): {
    readonly connected: boolean
    readonly sinceMs: number
    /** Why it is not connected, with the address that was tried; null where it is, or the reason is not known. */
    readonly fault: string | null
    readonly bootstrapServers: string
    /** Why a broker in this process stores nothing; null: it does, or it is no broker in this process. */
    readonly trouble?: BrokerTrouble | null
    /** Each broker that was met. */
    readonly nodes?: readonly BrokerNode[]
  }
  /** Milliseconds since the engine thread gave its last sign of life. */
  engineSilenceMs(): number
  /** Counters in shared memory, for the metrics. Null before the threads run. */
  counters(): CountersView | null
  /** `sub-topology-split` in force and the boundaries' topics. */
  readonly split: 'in-process' | 'repartition-topics'
}

/** Refused with a sentence that names the current state and the states that allow it. */
export type CommandResult =
  | { readonly ok: true; readonly state: LifecycleState }
  | { readonly ok: false; readonly reason: string }

export interface EngineCommands {
  /** RUNNING → DRAINING (→ PAUSED when drained). Answers at once. `who`: who asks, as people are to read it. */
  pause(who?: string): CommandResult
  /** DRAINING or PAUSED → RUNNING. */
  unpause(): CommandResult
}
