/** What the diagnosis judges by: plain values of one moment, each with the time since when it has been so. Epoch milliseconds. */
import type { PartitionKey } from '../../base/ids.ts'
import type { BrokerNode, BrokerTrouble } from '../../broker/port.ts'
import type { CommitPhase, Owing } from './owing.ts'
import type {
  BarrierSnapshot,
  EngineFailure,
  GroupChange,
  LifecycleState,
  RestoreProgress,
  WatermarkSnapshot,
} from '../view.ts'

export interface RecordPlace {
  readonly topic: string
  readonly partition: number
  readonly offset: number
}

export interface LaneFacts {
  readonly lane: string
  /** Since when one and the same step has been under way; null where the lane is between two. */
  readonly stepSinceMs: number | null
  /** Since when it has called nothing, ended nothing and heard of no call, though calls are out. Left out where that is not so. */
  readonly stillSinceMs?: number
  readonly node: string | null
  /** The application's function that the thread was last seen in, with file and line. */
  readonly function: string | null
  /** It waits outside of JavaScript, where nobody can ask it. */
  readonly blocked: boolean
  readonly at: RecordPlace | null
  /** Name of the function that the application gave to that node; null where it gave none, or one without a name. */
  readonly nodeFunction?: string | null
  /** The asynchronous call that has not answered for longest. */
  readonly call: {
    readonly sinceMs: number
    /** A restart in place gave it up, and it was made anew for the same record. */
    readonly isAgain?: boolean
    readonly node: string | null
    readonly nodeFunction?: string | null
    readonly at: RecordPlace | null
  } | null
  /** Calls that fail and are made again, by a breaker, with the record of the oldest; left out where there are none. */
  readonly failing?: {
    readonly calls: number
    readonly sinceMs: number
    readonly node: string | null
    readonly nodeFunction: string | null
    readonly at: RecordPlace | null
  }
  /** The longest step, and the longest call, that ended by itself. */
  readonly longestStepMs: number
  readonly longestCallMs: number
  /** What a call takes on average; 0 where no function is asynchronous. */
  readonly callMs: number
  readonly queuedRecords: number
  /** What its stores took for the last commit. */
  readonly storesMs?: number
  /** Records finished a second over the last seconds; null while it was not seen for long enough. */
  readonly rate: number | null
  /** Since when it has been at work, or waited for asynchronous functions, without a pause. */
  readonly busySinceMs: number | null
  /** At how many of the looks of these seconds it was, 0 to 1. Default 1. */
  readonly busyShare?: number
  /** The key behind which records have waited since then without a pause. */
  readonly hotKey: {
    readonly hash: string
    readonly waiting: number
    readonly node: string | null
    readonly topic: string | null
    readonly partition: number
    readonly sinceMs: number
  } | null
}

/** Whose open transaction it is; the id of a producer without a transactional id, or of one that the broker keeps to itself, stands alone. */
export interface TransactionHolder {
  readonly producerId: string
  readonly transactionalId: string | null
}

export interface PartitionFacts {
  readonly topic: string
  readonly partition: number
  readonly lag: number
  readonly committedOffset: number | null
  readonly buffered: number
  readonly bufferCapacity: number
  /** Records that an open transaction of another producer holds back, and since when. */
  readonly withheld: number
  readonly withheldSinceMs: number | null
  readonly withheldBy: TransactionHolder | null
  /** Since when its buffer has been full and nothing was fetched. */
  readonly fullSinceMs: number | null
  readonly watermarkMs: number | null
  readonly idle: boolean
  readonly idlenessTimeoutMs: number
  /** Its event time is told by those who write to it, whether or not it has records. */
  readonly isAnnounced?: boolean
  /** Since when it has had no record, and the longest time it ever had none before that. */
  readonly quietSinceMs: number
  readonly longestQuietMs: number
  /** Since when all that it has is committed: before that it cannot be idle. */
  readonly doneSinceMs: number
  /** The record that took the watermark ahead of the clock. */
  readonly ahead: { readonly offset: number; readonly timestampMs: number; readonly sinceMs: number } | null
}

export interface CommitFacts {
  readonly intervalMs: number
  readonly phase: BarrierSnapshot['phase']
  readonly phaseSinceMs: number
  readonly outstandingLanes: readonly string[]
  /** Of each step of a commit the broker that was last seen to owe it an answer. */
  readonly owed: Readonly<Partial<Record<CommitPhase, Owing>>>
  readonly last: BarrierSnapshot['last']
  readonly restarts: BarrierSnapshot['restarts']
  /** When the first of the restarts that count was seen. */
  readonly restartsSinceMs: number | null
}

export interface EarlierFailure extends Pick<EngineFailure, 'code' | 'message' | 'record'> {
  readonly atMs: number
}

export interface IdentityFacts {
  readonly name: string
  /** Who has it now, after this process was fenced; null while that is not known. */
  readonly holder: string | null
  /** Who had it when this process took it; null where nobody did. */
  readonly tookFrom: { readonly who: string; readonly atMs: number } | null
  /** When a fenced process ends by itself. */
  readonly endsAtMs: number | null
}

/** What is set in the configuration, as far as advice names it. */
export interface SettingsFacts {
  readonly laneTimeoutMs: number
  /** How long a broker may hold back a fetch for which it has nothing. */
  readonly fetchMaxWaitMs?: number
  readonly sessionTimeoutMs: number
  readonly stateStore: string
  readonly stateDir: string
  /** Where the stores of this application lie below that. */
  readonly stateFolder?: string
  readonly failoverTimeoutMs?: number
  readonly handoffTimeoutMs?: number
  readonly shutdownTimeoutMs?: number
  readonly instanceId: string | null
  readonly decoding: string
  readonly processing: string
  readonly producing: string
  readonly dropped: string
  readonly deadLetterTopic: string
}

export interface HaFacts {
  readonly podId: string
  readonly role: string
  readonly state: string
  readonly notReady: string | null
  /** That no pod may take over by itself: the pod that was asked for it, when, and from where. */
  readonly failoverPaused: {
    readonly pod: string | null
    readonly atMs: number | null
    readonly from: string | null
  } | null
  readonly active: { readonly podId: string; readonly state: string; readonly heardMs: number } | null
  /** The pod that holds the token and is on its way to be active, where it is another one. */
  readonly promoting?: { readonly podId: string; readonly diskFull: boolean; readonly heardMs: number }
  /** Pods whose commands are refused here, and since when this process has seen it. */
  readonly refused?: { readonly podIds: readonly string[]; readonly sinceMs?: number }
  /** Since when none has been active, as far as this process has seen it. */
  readonly noneSinceMs?: number
  /** The others that were heard. */
  readonly others: ReadonlyArray<{ readonly podId: string; readonly state: string }>
}

/** Schemas that records wait for. */
export interface SchemaFacts {
  /** Without credentials. */
  readonly registry: string
  readonly ids: readonly number[]
  /** What the registry does instead of giving them; null: it has not answered yet. */
  readonly trouble: string | null
  readonly giveUpAfterMs: number
}

export interface Facts {
  readonly applicationId: string
  /** Under which the engine itself writes in transactions; left out where it does not. */
  readonly transactionalId?: string
  /** Which process speaks: its pod or instance, host and process id. */
  readonly process?: string
  readonly settings?: SettingsFacts
  readonly state: LifecycleState
  readonly stateSinceMs: number
  readonly failure: EngineFailure | null
  /** What earlier runs of the process left, newest first. */
  readonly earlier: readonly EarlierFailure[]
  readonly pausedBy: { readonly who: string; readonly sinceMs: number } | null
  readonly restore: readonly RestoreProgress[]
  /** Records a second while restoring; null while it was not seen for long enough. */
  readonly restoreRate: number | null
  readonly broker: {
    readonly connected: boolean
    readonly sinceMs: number
    readonly address: string
    readonly lastError: string | null
    /** Why a broker in this process stores nothing, and since when. */
    readonly trouble?: (BrokerTrouble & { readonly sinceMs: number }) | null
    /** Each broker that was met; empty where there is no network between. */
    readonly nodes: readonly BrokerNode[]
  }
  readonly engineSilentMs: number
  /** Of that time: for how long the control thread was not let run either. */
  readonly missedMs: number
  /** When this process went on after it, or its machine, had stood still; left out: it did not of late. */
  readonly wokeMs?: number | undefined
  /** By how much, on average, the control thread came late at its looks of the last seconds: how short of processors the machine is. */
  readonly lateMs: number
  /** When a record was last seen to be let in to a lane. */
  readonly dispatchedAtMs: number
  /** Which stores wait for room on the disk, as a sentence, and since when. */
  readonly diskFull: { readonly sentence: string; readonly sinceMs: number } | null
  readonly lanes: readonly LaneFacts[]
  /** Those that were told to be slow at the last look. */
  readonly slowBefore?: ReadonlySet<string>
  readonly partitions: readonly PartitionFacts[]
  /** Whether anything in the application waits for event time. */
  readonly usesEventTime: boolean
  readonly globalWatermarkMs: number | null
  /** The records that have waited longest for their turn in the order of event time. */
  readonly orderWait: NonNullable<WatermarkSnapshot['orderWait']> | null
  readonly alignment: {
    readonly group: string
    readonly partition: PartitionKey
    readonly emptyLaggards: readonly PartitionKey[]
    readonly sinceMs: number
  } | null
  /** Records dropped as late since the clock was first seen to be behind the records. */
  readonly lateRecords: number
  readonly commit: CommitFacts | null
  /** Members of the group that came and went, newest first. */
  readonly groupChanges: readonly GroupChange[]
  /** The identity that this process alone may have; null where it has none that another could take. */
  readonly identity: IdentityFacts | null
  readonly license: {
    readonly status: string
    readonly counts: boolean
    readonly sinceMs: number
    /** Why it does not count, as a sentence. */
    readonly reason?: string
  }
  readonly ha: HaFacts | null
  /** Null where no record waits for a schema. */
  readonly schemas?: SchemaFacts | null
}
