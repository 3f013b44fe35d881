/**
 * What a node does: one variant for each kind of operator. Plain data, except for the user's functions and the serdes.
 */
import type { Logger } from '../base/logger.ts'
import type { Serde } from '../serde/serde.ts'
import type { StoreKind } from '../state/contract.ts'
import type { Headers } from '../broker/wire/headers.ts'

/** The record at hand, as user functions see it. */
export interface RecordView<K = unknown, V = unknown> {
  /** The key, after all operators before. */
  readonly key: K
  /** The value, after all operators before. */
  readonly value: V
  /** Event time, epoch milliseconds. */
  readonly timestamp: number
  /** The headers, in their order. */
  readonly headers: Headers
  /** The topic that the record behind this one was read from; '' for one that a schedule or a timer made. */
  readonly topic: string
  /** The partition that it was read from; -1 for one that a schedule or a timer made. */
  readonly partition: number
  /** Its offset there; -1 for one that a schedule or a timer made. */
  readonly offset: number
}

/** Where a function of a stream runs: its fourth argument. */
export interface FunctionContext {
  /** The id given to `defineApp`. */
  readonly applicationId: string
  /** The partition of the task that the function runs in. */
  readonly partition: number
  /**
   * Writes to the log, under the component `app`, with the node and the record that the function was called for, also behind
   * an `await`. It is the same object for many records: nothing is made for a record that logs nothing.
   */
  readonly logger: Logger
}

/** Streams give the context, tables do not. */
export type UserFn = (value: unknown, key: unknown, record: RecordView, context?: FunctionContext) => unknown
export type FoldFn = (aggregate: unknown, value: unknown, key: unknown, record: RecordView) => unknown
/** A function of left and right, in the order in which the user wrote them. */
export type JoinFn = (left: unknown, right: unknown, key: unknown) => unknown
export type MergeFn = (left: unknown, right: unknown, key: unknown) => unknown

export type WindowSpec =
  | {
      readonly type: 'time'
      readonly sizeMs: number
      readonly advanceMs: number
      readonly graceMs: number
      readonly closeAfterIdleMs?: number
      /** So much of the grace is for what windows above tell when they close. */
      readonly waitMs?: number
    }
  | {
      readonly type: 'sliding'
      readonly differenceMs: number
      readonly graceMs: number
      readonly closeAfterIdleMs?: number
      readonly waitMs?: number
    }
  | {
      readonly type: 'session'
      readonly gapMs: number
      readonly graceMs: number
      readonly closeAfterIdleMs?: number
      readonly waitMs?: number
    }
  | { readonly type: 'unlimited'; readonly startMs: number }

/** How a join reads the rows of a table: straight from a store, or computed from the tables above it. */
export type Getter =
  | { readonly kind: 'store'; readonly store: string; readonly storeKind: StoreKind; readonly global: boolean }
  | { readonly kind: 'filter'; readonly parent: Getter; readonly predicate: UserFn; readonly not: boolean }
  | { readonly kind: 'mapValues'; readonly parent: Getter; readonly fn: UserFn; readonly onDeletes: boolean }
  | {
      readonly kind: 'join'
      readonly left: Getter
      readonly right: Getter
      readonly leftOuter: boolean
      readonly rightOuter: boolean
      readonly joiner: JoinFn
    }
  /** What a suppressed table has let out last: kept beside the waiting update, else the row above. */
  | { readonly kind: 'suppressed'; readonly parent: Getter; readonly store: string }

export type StoreRefSpec = { readonly name: string; readonly kind: StoreKind }

/** Operators that make tables. They keep their rows only where a store is named. */
interface TableOutput {
  readonly store: StoreRefSpec | undefined
  readonly sendOldValues: boolean
}

export interface AggregateFns {
  /** Undefined: a reduce, whose first value is the aggregate. */
  readonly init: (() => unknown) | undefined
  readonly fold: FoldFn
  /** Whether the values matter. For a count they do not, so they need not be decoded. */
  readonly readsValue: boolean
}

/** How an asynchronous function is called, where the application says so. */
export interface CallSpec {
  /** At once, over all lanes of the process. */
  readonly concurrency?: number
  readonly timeoutMs?: number
  readonly ratePerMs?: number
  readonly breaker?: { readonly after: number; readonly pauseMs: number }
}

interface Calling {
  readonly calls?: CallSpec | undefined
}

export type OperatorSpec =
  | { readonly op: 'source' }
  | ({ readonly op: 'filter'; readonly predicate: UserFn; readonly not: boolean } & Calling)
  | ({ readonly op: 'map'; readonly fn: UserFn } & Calling)
  | ({ readonly op: 'mapValues'; readonly fn: UserFn } & Calling)
  | ({ readonly op: 'flatMap'; readonly fn: UserFn } & Calling)
  | ({ readonly op: 'flatMapValues'; readonly fn: UserFn } & Calling)
  | ({ readonly op: 'selectKey'; readonly fn: UserFn } & Calling)
  | ({ readonly op: 'peek'; readonly fn: UserFn } & Calling)
  | { readonly op: 'passThrough' }
  /** The predicate of each branch, in the order of the children. Undefined takes the rest. */
  | { readonly op: 'branch'; readonly predicates: ReadonlyArray<UserFn | undefined> }
  | { readonly op: 'nullKeyFilter'; readonly drop: boolean }
  | {
      readonly op: 'sink'
      readonly topic: string | UserFn
      readonly topicFunctionName: string | undefined
      readonly keySerde: Serde<unknown>
      readonly valueSerde: Serde<unknown>
      /** Encodes the inner key of a windowed one. It alone chooses the partition. */
      readonly windowedInner: Serde<unknown> | undefined
    }
  | {
      readonly op: 'handOff'
      /** The name of the virtual topic. `compile` fills in the index of the boundary. */
      readonly topic: string
      boundary: number
      readonly keySerde: Serde<unknown>
      readonly valueSerde: Serde<unknown>
      readonly windowedInner: Serde<unknown> | undefined
      /** The partition that a record is for; undefined: the key chooses it. */
      readonly toPartition: ((value: unknown) => number | undefined) | undefined
      readonly carriesChanges: boolean
    }
  | ({ readonly op: 'tableSource' } & TableOutput)
  | { readonly op: 'globalPut'; readonly store: StoreRefSpec; readonly timestamped: boolean }
  | ({
      readonly op: 'tableFilter'
      readonly predicate: UserFn
      readonly not: boolean
      readonly versioned: boolean
      /** Whether the table's own old value is needed, rather than that of the row above. */
    } & TableOutput)
  | ({
      readonly op: 'tableMapValues'
      readonly fn: UserFn
      readonly onDeletes: boolean
      readonly parentSendsOld: boolean
      readonly versioned: boolean
    } & TableOutput)
  | { readonly op: 'tableToStream' }
  | {
      readonly op: 'tableGroupBy'
      readonly fn: UserFn
      readonly versioned: boolean
      /** What it puts out goes through a topic, behind which the order is that of event time. */
      readonly throughTopic?: boolean
    }
  | ({
      readonly op: 'tableAggregate'
      readonly init: (() => unknown) | undefined
      readonly add: FoldFn
      readonly subtract: FoldFn
    } & TableOutput)
  | ({ readonly op: 'streamAggregate' } & AggregateFns & TableOutput & Calling)
  | ({
      readonly op: 'windowAggregate'
      readonly window: WindowSpec
      readonly emit: 'update' | 'close'
      readonly merge: MergeFn | undefined
    } & AggregateFns &
      TableOutput &
      Calling)
  | {
      readonly op: 'suppress'
      readonly store: string
      readonly until:
        | {
            readonly type: 'windowCloses'
            readonly graceMs: number
            readonly inclusiveEnd: boolean
            readonly closeAfterIdleMs: number | undefined
            /** See the windows'. */
            readonly waitMs?: number
          }
        | { readonly type: 'timeLimit'; readonly ms: number }
      readonly maxRecords: number | undefined
      readonly whenFull: 'fail' | 'emit'
      readonly parent: Getter | undefined
      readonly sendOldValues: boolean
    }
  | { readonly op: 'joinWindow'; readonly store: string }
  | ({
      readonly op: 'streamJoin'
      readonly side: 'left' | 'right'
      readonly otherStore: string
      readonly beforeMs: number
      readonly afterMs: number
      readonly graceMs: number
      readonly outer: boolean
      /** The records of either side that wait for a partner; undefined for inner joins. */
      readonly waitingStore: string | undefined
      readonly joiner: JoinFn
    } & Calling)
  | ({
      readonly op: 'selfJoin'
      readonly store: string
      /** Records without a partner are told too: there each meets itself at least. */
      readonly outer: boolean
      readonly beforeMs: number
      readonly afterMs: number
      readonly graceMs: number
      readonly joiner: JoinFn
    } & Calling)
  | ({
      readonly op: 'streamTableJoin'
      readonly getter: Getter
      readonly leftOuter: boolean
      readonly joiner: JoinFn
      /** Undefined: the record's own key. */
      readonly foreignKey: UserFn | undefined
      readonly grace: { readonly ms: number; readonly store: string } | undefined
    } & Calling)
  | {
      readonly op: 'tableJoin'
      readonly side: 'left' | 'right'
      readonly leftOuter: boolean
      readonly rightOuter: boolean
      readonly other: Getter
      readonly joiner: JoinFn
      readonly sendOldValues: boolean
      readonly versioned: boolean
    }
  | ({ readonly op: 'tableJoinMerge' } & TableOutput)
  | {
      readonly op: 'foreignKeySend'
      readonly foreignKey: UserFn
      readonly leftOuter: boolean
      readonly primaryKeySerde: Serde<unknown>
      readonly foreignKeySerde: Serde<unknown>
      readonly leftValueSerde: Serde<unknown>
      readonly versioned: boolean
      /** Answers come through a topic, and have to find the partition of the row that asks. */
      readonly throughTopic?: boolean
    }
  | { readonly op: 'foreignKeyReceive'; readonly store: string; readonly foreignKeySerde: Serde<unknown> }
  | {
      readonly op: 'foreignKeyJoin'
      readonly right: Getter
      readonly primaryKeySerde: Serde<unknown>
      readonly throughTopic?: boolean
    }
  | {
      readonly op: 'foreignTableJoin'
      readonly store: string
      readonly foreignKeySerde: Serde<unknown>
      readonly primaryKeySerde: Serde<unknown>
      readonly versioned: boolean
      readonly throughTopic?: boolean
    }
  | {
      readonly op: 'foreignKeyResolve'
      /** The store of the join's rows, where they are kept. */
      readonly result: StoreRefSpec | undefined
      /** Answers come through a topic, behind which a row may have changed since it asked. */
      readonly throughTopic?: boolean
      readonly foreignKey: UserFn
      readonly left: Getter
      readonly leftValueSerde: Serde<unknown>
      readonly leftOuter: boolean
      readonly joiner: JoinFn
    }
  | ({
      readonly op: 'process'
      readonly factory: (context: never) => unknown
      readonly stores: readonly string[]
      readonly fixedKey: boolean
      /** The store of the timers by key; undefined where the processor asked for none. */
      readonly timerStore: string | undefined
      /** The global stores that it may read. */
      readonly globalStores: readonly string[]
    } & Calling)

/** The spec of one kind of operator. */
export type SpecOf<Op extends OperatorSpec['op']> = Extract<OperatorSpec, { op: Op }>
