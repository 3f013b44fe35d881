/** What the control thread and the engine thread say to one another. */
import type { MessagePort } from 'node:worker_threads'
import type { LinkState } from './recovery/broker-link.ts'
import type { LogFields } from '../base/logger.ts'
import type { BrokerNode } from '../broker/port.ts'
import type { WireError } from '../base/errors.ts'
import type { HaCommandToEngine, HaFact } from './ha-contract.ts'
import type { BrokerAnswer, BrokerQuestion } from './recovery/broker-questions.ts'
import type {
  GroupPlaces,
  BarrierSnapshot,
  ConsumerSnapshot,
  OffsetsSnapshot,
  RestoreProgress,
  WatermarkSnapshot,
} from '../view/view.ts'

export type ToEngine =
  | { readonly type: 'start' }
  | { readonly type: 'pause'; readonly id: number }
  | { readonly type: 'unpause' }
  /** Drain, commit, close. */
  | { readonly type: 'stop' }
  /** Answer `idle` once all input is processed, closed and committed. */
  | { readonly type: 'until-idle'; readonly id: number }
  /** A lane's thread has ended: nothing it held can be saved. */
  | { readonly type: 'lane-lost'; readonly lane: number; readonly reason: string }
  /** The lane has a new thread: the channel to it, and for each other lane the one that takes the place of its own. */
  | {
      readonly type: 'lane-made'
      readonly lane: number
      readonly port: MessagePort
      readonly peers: ReadonlyArray<MessagePort | null>
    }
  /** Answer `answer`, some time or never. */
  | { readonly type: 'question'; readonly id: number; readonly question: BrokerQuestion }
  | HaCommandToEngine

export interface EngineSnapshot {
  readonly watermarks: WatermarkSnapshot | null
  readonly offsets: OffsetsSnapshot | null
  readonly consumer: ConsumerSnapshot | null
  readonly barriers: BarrierSnapshot
  /** Which stores wait for room on the disk, as a sentence; null: none. */
  readonly diskFull: string | null
  readonly broker: LinkState
  /** What the client has met of each broker; empty where there is no network between. */
  readonly brokers: readonly BrokerNode[]
}

/** Facts, in the order in which they happened; the control thread makes lifecycle transitions of them. */
export type EngineFact =
  | { readonly type: 'started' }
  | { readonly type: 'restoring' }
  | { readonly type: 'restore-progress'; readonly progress: readonly RestoreProgress[] }
  /** Stores are complete and records are processed (or would be, were the application not paused). */
  | { readonly type: 'running' }
  /** Nothing of the pause with this number is under way any more. */
  | { readonly type: 'drained'; readonly id: number }
  | { readonly type: 'restarting'; readonly cause: string }
  | { readonly type: 'idle'; readonly id: number }
  | { readonly type: 'answer'; readonly id: number; readonly answer: BrokerAnswer }
  | { readonly type: 'stopped' }
  | { readonly type: 'failed'; readonly error: WireError; readonly restartHelps: boolean }
  /** The thread of this lane has ended, and what follows needs another one. */
  | { readonly type: 'lane-wanted'; readonly lane: number }
  /** A lane did not come back in time: the process must end. */
  /** `at`: what it is at, as a sentence. */
  | { readonly type: 'lane-stuck'; readonly lane: number; readonly at?: string }
  | { readonly type: 'snapshot'; readonly snapshot: EngineSnapshot }
  /** After every rebalance; null: this process has no place in the group. */
  | { readonly type: 'places'; readonly places: GroupPlaces | null }
  | {
      readonly type: 'log'
      readonly level: 'debug' | 'info' | 'warn' | 'error'
      readonly message: string
      /** Left out: the engine's own. */
      readonly component?: 'app'
      readonly fields?: LogFields
    }
  | HaFact
