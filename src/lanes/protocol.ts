/**
 * What the engine thread and the lanes say to one another. Channels are FIFO per pair. Every message that belongs to a
 * run of the engine carries its number: what is still under way from before an in-place restart is dropped on arrival.
 */
import type { MessagePort } from 'node:worker_threads'
import type { CommitEpoch } from '../base/ids.ts'
import type { BatchPack } from '../broker/wire/batch-pack.ts'
import type { AbortedRange as AbortedTransaction } from '../broker/wire/record-batch.ts'
import type { WireError } from '../base/errors.ts'
import type { Checkpoint } from '../state/contract.ts'
import type { HeldByNode } from '../operators/quiet/held-back.ts'
import type { AffinityPlan, TaskRef } from '../topology/affinity.ts'
import type { FunctionLine } from './tasks/log-lines.ts'
import type { Place } from './levels/place.ts'
import type { OutputTopic } from './outputs.ts'
import type { StoreQuery, StoreRow } from './stores/store-query.ts'
import type { HeadBytes } from './transfer.ts'

export interface StorePartition {
  readonly store: string
  readonly partition: number
}

/** What a store was found to hold. */
export interface OpenedStore extends StorePartition {
  readonly checkpoint: Checkpoint | null
  /** When that was written, by the wall clock, where it lies on disk. */
  readonly writtenAt?: number
}

/** How far the records of a task have come. */
export interface TaskWatermark extends TaskRef {
  readonly watermark: number
}

/** Its own watermark, where it has one: that of the last commit. */
export interface StartingTask extends TaskRef {
  readonly watermark?: number
}

/** A record of a scheduled source, encoded. */
export interface EmittedRecord {
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly timestamp: number
}

/** Topics by the number that records carry. */
export interface OriginTopics {
  readonly names: readonly string[]
  /** Which incarnation of each topic it is. */
  readonly topicIds: readonly string[]
}

export type ToLane =
  | {
      readonly type: 'configure'
      readonly run: number
      readonly affinity: AffinityPlan
      readonly origins: OriginTopics
    }
  /** Topics came that match a pattern: the list that records name their topic in has grown. */
  | { readonly type: 'origins'; readonly run: number; readonly origins: OriginTopics }
  /** Topics that sinks write to. */
  | { readonly type: 'topics'; readonly topics: readonly OutputTopic[] }
  /** Open the stores of these tasks and say what they hold. */
  | { readonly type: 'open'; readonly run: number; readonly tasks: readonly TaskRef[] }
  | {
      readonly type: 'restore'
      readonly run: number
      readonly store: string
      readonly partition: number
      /** Empty the store first. */
      readonly wipe: boolean
      readonly records: Uint8Array
      readonly fromOffset: number
      /** Records from this offset on are not the store's: where a source topic serves as changelog they are input yet. */
      readonly untilOffset: number
      readonly aborted: readonly AbortedTransaction[]
      readonly checkpoint: Checkpoint
    }
  /** Asks for the rows of a store, from this key on, as batches for its changelog. */
  | ({ readonly type: 'dump'; readonly run: number; readonly from: Uint8Array | null } & StorePartition)
  /** Records of a global table's topic, for every lane. */
  | {
      readonly type: 'global'
      readonly run: number
      readonly source: number
      readonly topic: string
      readonly partition: number
      readonly records: Uint8Array
      readonly fromOffset: number
      readonly aborted: readonly AbortedTransaction[]
    }
  /** The stores are complete: process. */
  | {
      readonly type: 'start'
      readonly run: number
      readonly tasks: readonly StartingTask[]
      readonly epoch: CommitEpoch
      readonly watermark: number
      /** What the application may pass on to tell its runs apart: a later run's is never lower. */
      readonly fencingToken?: number
    }
  /** All lanes have started: what one hands over on its own account finds its task. */
  | { readonly type: 'begin'; readonly run: number }
  /** Nothing is let in: timers by the wall clock are not to fire either. Or it goes on. */
  | { readonly type: 'pause'; readonly run: number; readonly paused: boolean }
  | {
      readonly type: 'data'
      readonly run: number
      readonly buffer: ArrayBuffer
      readonly head: HeadBytes
      readonly length: number
      readonly records: number
      /** Everything that was dispatched to this lane up to this watermark and this number has come with it. */
      readonly watermark: number
      readonly seq: number
      readonly caughtUp?: boolean
    }
  /** `caughtUp`, here and above: no more is known to lie at the broker. Told only where outputs leave ahead of their commit. */
  | {
      readonly type: 'watermark'
      readonly run: number
      readonly watermark: number
      readonly seq: number
      readonly caughtUp?: boolean
    }
  /** Everything that was dispatched to these tasks up to their watermarks has come before. */
  | { readonly type: 'task-watermarks'; readonly run: number; readonly tasks: readonly TaskWatermark[] }
  | {
      readonly type: 'barrier'
      readonly run: number
      readonly epoch: CommitEpoch
      readonly watermark: number
      readonly seq: number
    }
  | {
      readonly type: 'result'
      readonly run: number
      readonly epoch: CommitEpoch
      readonly commitId: string
      readonly checkpoints: ReadonlyArray<StorePartition & { readonly checkpoint: Checkpoint }>
    }
  /** A scheduled source is due: run its function and answer with `emitted`. */
  | {
      readonly type: 'tick'
      readonly run: number
      readonly source: number
      readonly scheduledAt: number
      readonly count: number
    }
  /** Tasks that leave this process; all they did is committed. */
  | { readonly type: 'close'; readonly run: number; readonly tasks: readonly TaskRef[] }
  /** In-place restart: drop everything that is not committed. */
  | { readonly type: 'reset'; readonly run: number }
  | { readonly type: 'stop' }

/** From the engine's thread to that of a lane: another lane has a new thread, and this is the way to it. */
export interface LanePeer {
  readonly type: 'peer'
  readonly lane: number
  readonly port: MessagePort
}

/** From the control thread: the runtime has ended as by a crash. The lane lets go of its stores as they are, and its thread ends. */
export interface LaneAbandoned {
  readonly type: 'abandoned'
}

/** An interactive query, from the control thread; answered from committed state, past the queue of records. */
export interface LaneQuery {
  readonly type: 'query'
  readonly id: number
  readonly store: string
  readonly query: StoreQuery
  /** Most rows to answer with. */
  readonly limit: number
}

export interface LaneAnswer {
  readonly type: 'answer'
  readonly id: number
  readonly rows: readonly StoreRow[]
  readonly count: number
  readonly error?: WireError
}

export type LaneToLane =
  | {
      readonly type: 'handoff'
      readonly run: number
      readonly from: number
      readonly level: number
      readonly epoch: CommitEpoch
      readonly buffer: ArrayBuffer
      readonly length: number
      readonly records: number
      /** What the sender's shallower levels have been advanced to, and the number up to which they have done all records. */
      readonly watermark: number
      readonly seq: number
      /** The records are in the order of their places, and this is the last one's. */
      readonly isInOrder: boolean
      /** False where those that receive them take records as they arrive. */
      readonly isOrdered: boolean
      readonly last: Place
    }
  | {
      readonly type: 'hand-watermark'
      readonly run: number
      readonly from: number
      readonly level: number
      readonly watermark: number
      readonly seq: number
    }
  | {
      readonly type: 'hand-barrier'
      readonly run: number
      readonly from: number
      readonly level: number
      readonly epoch: CommitEpoch
      readonly watermark: number
      readonly seq: number
      /** Records sent to this lane and level since the last mark. */
      readonly sent: number
    }

export interface Held extends HeldByNode {
  readonly partition: number
}

export interface TellsHeld {
  /** What the tasks of the lane hold back, at the mark of this commit or where they start. Left out: nobody asks. */
  readonly held?: readonly Held[] | undefined
}

export type FromLane =
  | { readonly type: 'ready'; readonly lane: number }
  | {
      readonly type: 'opened'
      readonly lane: number
      readonly run: number
      readonly stores: readonly OpenedStore[]
    }
  | {
      readonly type: 'restored'
      readonly lane: number
      readonly run: number
      readonly store: string
      readonly partition: number
      readonly records: number
    }
  /** `next` is where the rest begins; null: there is no more. */
  | ({
      readonly type: 'dumped'
      readonly lane: number
      readonly run: number
      readonly packs: readonly BatchPack[]
      readonly next: Uint8Array | null
    } & StorePartition)
  | { readonly type: 'loaded'; readonly lane: number; readonly run: number; readonly source: number }
  | ({ readonly type: 'started'; readonly lane: number; readonly run: number } & TellsHeld)
  | {
      readonly type: 'consumed'
      readonly lane: number
      readonly run: number
      readonly bytes: number
      readonly records: number
    }
  | {
      readonly type: 'out'
      readonly lane: number
      readonly run: number
      readonly epoch: CommitEpoch
      readonly packs: readonly BatchPack[]
    }
  | ({
      readonly type: 'ack'
      readonly lane: number
      readonly run: number
      readonly epoch: CommitEpoch
      /** By store; a partition without a batch changed rows that stand in its changelog already. */
      readonly changelogs: readonly BatchPack[]
      /** Records of this epoch: from the engine, to other lanes, from other lanes. All of them are done. */
      readonly taken: number
      readonly sent: number
      readonly received: number
    } & TellsHeld)
  | { readonly type: 'applied'; readonly lane: number; readonly run: number; readonly epoch: CommitEpoch }
  /** Slots of the keys of records that are done; told once a function was asynchronous. */
  | { readonly type: 'finished'; readonly lane: number; readonly run: number; readonly keys: readonly number[] }
  /** The lane has so much before it that nothing is to be let in any more, or has no longer. */
  | { readonly type: 'overloaded'; readonly lane: number; readonly run: number; readonly overloaded: boolean }
  /** Something is to be committed (timers fired); at once when urgent. */
  | {
      readonly type: 'commit-wanted'
      readonly lane: number
      readonly run: number
      /** The oldest that the lane has not acknowledged: the commit under way may be the one that is asked for. */
      readonly epoch: CommitEpoch
      readonly urgent: boolean
      /** Rows past their time wait for it, and nothing else. */
      readonly forgets?: true
    }
  | {
      readonly type: 'emitted'
      readonly lane: number
      readonly run: number
      readonly source: number
      readonly count: number
      readonly records: readonly EmittedRecord[]
    }
  | { readonly type: 'resolve-topics'; readonly lane: number; readonly topics: readonly string[] }
  | { readonly type: 'closed'; readonly lane: number; readonly run: number; readonly tasks: readonly TaskRef[] }
  /** The disk has no room for the lane's stores (the sentence says which), or has room again (null). */
  | { readonly type: 'disk-full'; readonly lane: number; readonly sentence: string | null }
  /** For the log: files of a store were set aside. Of several with the same `about` the first is told. */
  | { readonly type: 'notice'; readonly lane: number; readonly message: string; readonly about?: string }
  /** A function of the application wrote to the log. */
  | { readonly type: 'log'; readonly lane: number; readonly line: FunctionLine }
  | { readonly type: 'reset-done'; readonly lane: number; readonly run: number }
  | { readonly type: 'fault'; readonly lane: number; readonly run: number; readonly error: WireError }
