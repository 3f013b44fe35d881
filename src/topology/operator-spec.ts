/** What a node does: one variant a kind of operator. Plain data but for the user's functions and the serdes. */
import type { Serde } from '../serde/serde.ts'
import type { StoreKind } from '../state/contract.ts'
import type { Headers } from '../wire/headers.ts'

/** What a user function sees of the record at hand. */
export interface RecordView<K = unknown, V = unknown> {
  readonly key: K
  readonly value: V
  /** Epoch milliseconds. */
  readonly timestamp: number
  readonly headers: Headers
  /** Where the record that caused this one was read; '' and -1 for a scheduled or timer-made one. */
  readonly topic: string
  readonly partition: number
  readonly offset: number
}

export type UserFn = (value: unknown, key: unknown, record: RecordView) => unknown
export type FoldFn = (aggregate: unknown, value: unknown, key: unknown, record: RecordView) => unknown
/** Sees left and right in the order the user wrote them. */
export type JoinFn = (left: unknown, right: unknown, key: unknown) => unknown
export type MergeFn = (left: unknown, right: unknown, key: unknown) => unknown

export type WindowSpec =
  | {
      readonly type: 'time'
      readonly sizeMs: number
      readonly advanceMs: number
      readonly graceMs: number
      readonly closeAfterIdleMs?: number
    }
  | {
      readonly type: 'sliding'
      readonly differenceMs: number
      readonly graceMs: number
      readonly closeAfterIdleMs?: number
    }
  | { readonly type: 'session'; readonly gapMs: number; readonly graceMs: number; readonly closeAfterIdleMs?: number }
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
  /** What a suppressed table last let out: kept beside the waiting update, else the row above. */
  | { readonly kind: 'suppressed'; readonly parent: Getter; readonly store: string }

export type StoreRefSpec = { readonly name: string; readonly kind: StoreKind }

/** Table operators keep their rows only where a store is named. */
interface TableOutput {
  readonly store: StoreRefSpec | undefined
  readonly sendOldValues: boolean
}

export interface AggregateFns {
  /** Undefined: a reduce, whose first value is the aggregate. */
  readonly init: (() => unknown) | undefined
  readonly fold: FoldFn
  /** False: the values play no part (a count), so that they need not be decoded. */
  readonly readsValue: boolean
}

export type OperatorSpec =
  | { readonly op: 'source' }
  | { readonly op: 'filter'; readonly predicate: UserFn; readonly not: boolean }
  | { readonly op: 'map'; readonly fn: UserFn }
  | { readonly op: 'mapValues'; readonly fn: UserFn }
  | { readonly op: 'flatMap'; readonly fn: UserFn }
  | { readonly op: 'flatMapValues'; readonly fn: UserFn }
  | { readonly op: 'selectKey'; readonly fn: UserFn }
  | { readonly op: 'peek'; readonly fn: UserFn }
  | { readonly op: 'passThrough' }
  /** One predicate a branch, in the order of the children; undefined takes what is left. */
  | { readonly op: 'branch'; readonly predicates: ReadonlyArray<UserFn | undefined> }
  | { readonly op: 'nullKeyFilter'; readonly drop: boolean }
  | {
      readonly op: 'sink'
      readonly topic: string | UserFn
      readonly topicFunctionName: string | undefined
      readonly keySerde: Serde<unknown>
      readonly valueSerde: Serde<unknown>
      /** Encodes the inner key of a windowed one: it alone chooses the partition. */
      readonly windowedInner: Serde<unknown> | undefined
    }
  | {
      readonly op: 'handOff'
      /** Name of the virtual topic; the index of the boundary is filled in by `compile`. */
      readonly topic: string
      boundary: number
      readonly keySerde: Serde<unknown>
      readonly valueSerde: Serde<unknown>
      readonly windowedInner: Serde<unknown> | undefined
      /** Bytes that choose the receiving partition instead of the key's, or undefined for the key. */
      readonly routeBy: ((value: unknown) => Uint8Array | undefined) | undefined
      readonly carriesChanges: boolean
    }
  | ({ readonly op: 'tableSource' } & TableOutput)
  | { readonly op: 'globalPut'; readonly store: StoreRefSpec; readonly timestamped: boolean }
  | ({
      readonly op: 'tableFilter'
      readonly predicate: UserFn
      readonly not: boolean
      readonly versioned: boolean
      /** Whether the table's own old value is needed, or that of the row above tells it. */
    } & TableOutput)
  | ({
      readonly op: 'tableMapValues'
      readonly fn: UserFn
      readonly onDeletes: boolean
      readonly parentSendsOld: boolean
      readonly versioned: boolean
    } & TableOutput)
  | { readonly op: 'tableToStream' }
  | { readonly op: 'tableGroupBy'; readonly fn: UserFn; readonly versioned: boolean }
  | ({
      readonly op: 'tableAggregate'
      readonly init: (() => unknown) | undefined
      readonly add: FoldFn
      readonly subtract: FoldFn
    } & TableOutput)
  | ({ readonly op: 'streamAggregate' } & AggregateFns & TableOutput)
  | ({
      readonly op: 'windowAggregate'
      readonly window: WindowSpec
      readonly emit: 'update' | 'close'
      readonly merge: MergeFn | undefined
    } & AggregateFns &
      TableOutput)
  | {
      readonly op: 'suppress'
      readonly store: string
      readonly until:
        | {
            readonly type: 'windowCloses'
            readonly graceMs: number
            readonly inclusiveEnd: boolean
            readonly closeAfterIdleMs: number | undefined
          }
        | { readonly type: 'timeLimit'; readonly ms: number }
      readonly maxRecords: number | undefined
      readonly whenFull: 'fail' | 'emit'
      readonly parent: Getter | undefined
      readonly sendOldValues: boolean
    }
  | { readonly op: 'joinWindow'; readonly store: string }
  | {
      readonly op: 'streamJoin'
      readonly side: 'left' | 'right'
      readonly otherStore: string
      readonly beforeMs: number
      readonly afterMs: number
      readonly graceMs: number
      readonly outer: boolean
      /** Records of either side that wait for a partner; undefined for inner joins. */
      readonly waitingStore: string | undefined
      readonly joiner: JoinFn
    }
  | {
      readonly op: 'selfJoin'
      readonly store: string
      readonly beforeMs: number
      readonly afterMs: number
      readonly graceMs: number
      readonly joiner: JoinFn
    }
  | {
      readonly op: 'streamTableJoin'
      readonly getter: Getter
      readonly leftOuter: boolean
      readonly joiner: JoinFn
      /** Undefined: the record's own key. */
      readonly foreignKey: UserFn | undefined
      readonly grace: { readonly ms: number; readonly store: string } | undefined
    }
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
    }
  | { readonly op: 'foreignKeyReceive'; readonly store: string; readonly foreignKeySerde: Serde<unknown> }
  | { readonly op: 'foreignKeyJoin'; readonly right: Getter; readonly primaryKeySerde: Serde<unknown> }
  | {
      readonly op: 'foreignTableJoin'
      readonly store: string
      readonly foreignKeySerde: Serde<unknown>
      readonly primaryKeySerde: Serde<unknown>
      readonly versioned: boolean
    }
  | {
      readonly op: 'foreignKeyResolve'
      /** Where the join's rows are kept, if they are. */
      readonly result: StoreRefSpec | undefined
      readonly left: Getter
      readonly leftValueSerde: Serde<unknown>
      readonly leftOuter: boolean
      readonly joiner: JoinFn
    }
  | {
      readonly op: 'process'
      readonly factory: (context: never) => unknown
      readonly stores: readonly string[]
      readonly fixedKey: boolean
      /** Store of the timers per key; undefined where the processor asked for none. */
      readonly timerStore: string | undefined
      /** Global stores it may read. */
      readonly globalStores: readonly string[]
    }

/** The spec of one kind of operator. */
export type SpecOf<Op extends OperatorSpec['op']> = Extract<OperatorSpec, { op: Op }>
