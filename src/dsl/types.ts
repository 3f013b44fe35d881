/** Types that the DSL's operators share. */
import type { Duration } from '../base/duration.ts'
import type { Serde } from '../serde/serde.ts'
import type { Names } from '../topology/check-given.ts'
import type { FunctionContext, RecordView } from '../topology/operator-spec.ts'

/** What a user function may return where a value of type `T` is wanted: the value, or a promise of it. */
export type Awaitable<T> = T | Promise<T>

/**
 * A function of a record. It sees the value first, then the key, then the whole record: timestamp, headers, topic,
 * partition and offset. While its promise is open the next record of the same key waits, and others do not.
 */
export type RecordFn<K, V, R> = (value: V, key: K, record: RecordView<K, V>) => Awaitable<R>

/** As `RecordFn`, of a condition that says more of the value's type. */
export type RecordGuard<K, V, S extends V> = (value: V, key: K, record: RecordView<K, V>) => value is S

/** A function of a stream: a `RecordFn` that is also told where it runs, and has a logger from there. */
export type StreamFn<K, V, R> = (value: V, key: K, record: RecordView<K, V>, context: FunctionContext) => Awaitable<R>

/** Folds one value into an aggregate, as the function of `Array.prototype.reduce` does, and may be asynchronous. */
export type Fold<K, V, A> = (aggregate: A, value: V, key: K, record: RecordView<K, V>) => Awaitable<A>

/** Options of every operator. */
export interface Named {
  /** Name of the operator in the topology. Default: generated from its kind and position. */
  readonly name?: string
}
export const namedOptions: Names<Named> = { name: true }

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
  /** Default: that of the operator, else text as UTF-8 and anything else in a form of its own. */
  readonly key?: Serde<K>
  /** Default: that of the operator, else JSON. */
  readonly value?: Serde<V>
}
export const storeOptions: Names<StoreSettings> = {
  name: true,
  type: true,
  historyRetention: true,
  retention: true,
  ttl: true,
  key: true,
  value: true,
}

/** Options of an operator that keeps rows. */
export interface Stored<K = unknown, V = unknown> extends Named {
  /** Name or settings of the store that keeps the result. */
  readonly store?: string | StoreSettings<K, V>
  /**
   * When the table tells what changed: with every update (`on-update`), or each changed row once per commit
   * (`per-commit`), with the value it had at the last one. Default: `topology.emit`, which is `on-update`.
   */
  readonly emit?: 'on-update' | 'per-commit'
}
export const storedOptions: Names<Stored> = { ...namedOptions, store: true, emit: true }

/** The serdes of what an operator passes on, where they differ from what the engine knows already. */
export interface WithSerdes<K, V> extends Named {
  /** Default: what is known of the key; else text as UTF-8, and anything else as JSON. */
  readonly key?: Serde<K>
  /** Default: what is known of the value; else JSON. */
  readonly value?: Serde<V>
}
export const serdeOptions: Names<WithSerdes<unknown, unknown>> = { ...namedOptions, key: true, value: true }

/** In which order an operator takes records that came to their key by way of other lanes. */
export interface Ordered {
  /**
   * `event-time`: as if all records of the application were taken one by one, the oldest first. So a record that was
   * re-keyed meets a table as it was at the record's time. It waits until everything older has come as far: a hop
   * between lanes, and as long as asynchronous functions above take. `arrival`: as records come, without that wait;
   * results then depend on timing. It holds for all operators that run in one task with this one. Default:
   * `event-time`.
   */
  readonly order?: 'event-time' | 'arrival'
}
export const groupOptions: Names<WithSerdes<unknown, unknown> & Ordered> = { ...serdeOptions, order: true }

/** How a source judges the progress of event time. */
export interface WatermarkSettings {
  /** How far behind the newest record of its partition a record may lie and still be in time. Default: 0. */
  readonly maxOutOfOrderness?: Duration
  /**
   * A partition without records for this long holds nobody back; 0 turns that off. Default:
   * `watermark.idleness-timeout`.
   */
  readonly idleness?: Duration
  /** Sources of one group are read no further ahead of the slowest of them than `maxDrift`. Default: none. */
  readonly alignment?: { readonly group: string; readonly maxDrift: Duration }
}
export const watermarkOptions: Names<WatermarkSettings> = { maxOutOfOrderness: true, idleness: true, alignment: true }
export const alignmentOptions: Names<NonNullable<WatermarkSettings['alignment']>> = { group: true, maxDrift: true }

/** How a topic is read. */
export interface SourceSettings<K, V> extends Named {
  /** Default: UTF-8 text. */
  readonly key?: Serde<K>
  /** Default: JSON. */
  readonly value?: Serde<V>
  /**
   * Event time of a record, epoch milliseconds. Anything but an integer leaves the record's own timestamp; a negative
   * one drops the record. Of a table it is not asked where a record has no value: the deletion of the row has the
   * record's own timestamp. Default: the record's own timestamp.
   */
  readonly timestamp?: (value: V, key: K, record: Omit<RecordView<K, V>, 'key' | 'value'>) => number
  /**
   * How event time goes on. Default: records come in order, and idleness is what the application is configured with.
   */
  readonly watermark?: WatermarkSettings
}
export const sourceOptions: Names<SourceSettings<unknown, unknown>> = {
  ...serdeOptions,
  timestamp: true,
  watermark: true,
}

/** How a topic is read as a stream whose values may be null. */
export interface TombstoneSettings<K, V> extends Omit<SourceSettings<K, V>, 'timestamp'> {
  /**
   * The topic has records without a value, such as those that delete a row of a table, and the functions behind the
   * stream are ready for them: the type of its values has null. Without it such records come all the same, as null, and
   * the first that a function of the application is given is told in the log.
   */
  readonly tombstones: true
  /** As in `SourceSettings`, of records without a value too. */
  readonly timestamp?: (value: V | null, key: K, record: Omit<RecordView<K, V | null>, 'key' | 'value'>) => number
}

/** The key of a windowed result. */
export type { Window, Windowed } from '../state/contract.ts'
