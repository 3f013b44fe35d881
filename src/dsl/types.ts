/** Types that the DSL's operators share. */
import type { Duration } from '../base/duration.ts'
import type { Serde } from '../serde/serde.ts'
import type { RecordView } from '../topology/operator-spec.ts'

/** What a user function may return where a value of type `T` is wanted: the value, or a promise of it. */
export type Awaitable<T> = T | Promise<T>

/** Sees the value first, then the key, then the whole record: timestamp, headers, topic, partition, offset. */
export type RecordFn<K, V, R> = (value: V, key: K, record: RecordView<K, V>) => Awaitable<R>

/** Folds one value into an aggregate, as the function of `Array.prototype.reduce`. */
export type Fold<K, V, A> = (aggregate: A, value: V, key: K, record: RecordView<K, V>) => Awaitable<A>

export interface Named {
  /** Name of the operator in the topology. Default: generated from its kind and position. */
  readonly name?: string
}

/** How a table keeps its rows. */
export interface StoreSettings<K = unknown, V = unknown> {
  /** Name of the store. Default: generated from the operator's kind and position. */
  readonly name?: string
  /** `versioned` keeps older rows too, so that joins can look up the row valid at a record's time. */
  readonly type?: 'versioned'
  /** Versioned stores: how far back rows are kept. */
  readonly historyRetention?: Duration
  /** Window and session stores: how long a window is kept, measured from its end. Default: as long as it may change. */
  readonly retention?: Duration
  /** Rows that were not updated for this long, in event time, are forgotten. Default: kept. */
  readonly ttl?: Duration
  readonly key?: Serde<K>
  readonly value?: Serde<V>
}

export interface Stored<K = unknown, V = unknown> extends Named {
  /** Name or settings of the store that keeps the result. */
  readonly store?: string | StoreSettings<K, V>
}

/** The serdes of what an operator passes on, where they differ from what the engine knows already. */
export interface WithSerdes<K, V> extends Named {
  readonly key?: Serde<K>
  readonly value?: Serde<V>
}

export interface WatermarkSettings {
  /** How far behind the newest record of its partition a record may lie without being late. Default: 0. */
  readonly maxOutOfOrderness?: Duration
  /** A partition without records for this long holds nobody back. 0 turns it off. Default: the application's setting. */
  readonly idleness?: Duration
  /** Sources of one group are not read further ahead of the slowest of them than `maxDrift`. */
  readonly alignment?: { readonly group: string; readonly maxDrift: Duration }
}

export interface SourceSettings<K, V> extends Named {
  /** Default: UTF-8 text. */
  readonly key?: Serde<K>
  /** Default: JSON. */
  readonly value?: Serde<V>
  /**
   * Event time of a record, epoch milliseconds. Anything but an integer leaves the record's own timestamp; a negative
   * one drops the record. Default: the record's own timestamp.
   */
  readonly timestamp?: (value: V, key: K, record: Omit<RecordView<K, V>, 'key' | 'value'>) => number
  readonly watermark?: WatermarkSettings
}

/** The key of a windowed result. */
export type { Window, Windowed } from '../state/contract.ts'
