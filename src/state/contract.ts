/**
 * What a state store is, in two layers. A *backend* keeps bytes under ordered byte keys, durably or not, and applies
 * one commit's changes in one atomic step together with the checkpoint. A *store* is what operators and user code see:
 * typed, synchronous, with the changes of the open and the sealed commit epoch laid over the backend.
 * One instance of each belongs to one (store, changelog partition) and is used by one lane at a time.
 */
import type { CommitEpoch } from '../base/ids.ts'
import type { Serde } from '../serde/serde.ts'
import type { RowPrefetch } from './table/prefetch.ts'

/** Kept in the backend, written in the same atomic step as the data. */
export interface Checkpoint {
  /** Next offset of the changelog partition that is not yet in the backend; all before it is. */
  readonly changelogOffset: number
  /** Where rows from behind that may be in it as well: the offset that it fits again once that is replayed. */
  readonly ahead?: number
  /** Identity of the newest commit of which something is in it (`<tokenEpoch>.<seq>`), empty before the first. */
  readonly commitId: string
  /** Identity of the changelog topic this data came from. */
  readonly topicId: string
  /** Largest time of a row that was put, in a store that forgets. */
  readonly newest?: number
  /** What is at this time or before was forgotten. */
  readonly horizon?: number
}

export type ByteEntry = readonly [key: Uint8Array, value: Uint8Array]
export type ByteChange = readonly [key: Uint8Array, value: Uint8Array | null]

/** Rows of one write, by their places. */
export interface RowWrites {
  readonly count: number
  /** The key's bytes as a string (`bytes.ts`). */
  key(place: number): string
  /** Writes the key's bytes at `at`, and gives the position behind them: absent where keys are strings anyway. */
  writeKey?(place: number, target: Uint8Array, at: number): number
  /** Valid until the next call; null: the row goes. */
  value(place: number): Uint8Array | null
  /** The same rows, where they come in the order of the hashes of their keys. */
  readonly hashed?: HashedRows | undefined
}

export interface HashedRows {
  /** By place, as unsigned numbers. */
  readonly hashes: Uint32Array
  keyLength(place: number): number
  writeKey(place: number, target: Uint8Array, at: number): number
  value(place: number): Uint8Array | null
  /** Prefetches rows that are asked for next, as `prefetch.ts` does. */
  touch(from: number, to: number): void
}

/** Ordered bytes: keys compare as unsigned bytes, a prefix before its extensions. */
export interface StoreBackend {
  readonly durable: boolean
  /** Longest key it takes; undefined: any. A store refuses a longer one when it is put. */
  readonly maxKeyBytes?: number
  /** The bytes are valid until the next call: copy what is to be kept. */
  get(key: Uint8Array): Uint8Array | undefined
  /**
   * Ascending from `from` (inclusive) to `to` (exclusive); undefined bounds are open. `reverse` walks the same range
   * downwards.
   */
  range(from: Uint8Array | undefined, to: Uint8Array | undefined, reverse?: boolean): IterableIterator<ByteEntry>
  /** All changes and the checkpoint, or nothing. Without a checkpoint the one before stays. */
  apply(changes: Iterable<ByteChange>, checkpoint?: Checkpoint): void
  /** As `get`, for a key string (`bytes.ts`): absent where bytes are needed anyway. */
  getAt?(key: string): Uint8Array | undefined
  /** As `apply`, of the rows of these places, without a copy of each: absent where bytes are needed anyway. */
  applyRows?(rows: RowWrites, from: number, to: number, checkpoint?: Checkpoint): void
  /** Rows are best written in the order of the hashes of their keys, not in that of the keys. */
  readonly inHashOrder?: boolean
  checkpoint(): Checkpoint | undefined
  /** When the checkpoint's changelog offset was written, by the wall clock; absent where nothing outlives the process. */
  writtenAt?(): number | undefined
  /** Changes when the backend was set aside and begun anew; absent where that never happens. */
  readonly incarnation?: number
  /** The rows that were there when it was opened are gone: nothing is read or written before `opensAnew`. */
  readonly isLost?: boolean
  /** Goes on with what there is by now. */
  opensAnew?(): void
  /** Number of keys, exact or estimated. */
  entries(): number
  /** As `entries`, but without reading for it: asked with every commit. */
  entriesAbout?(): number
  /** Bytes that the rows take, estimated from some of them or from pages; absent where nobody knows. */
  bytes?(): number
  /** Deletes everything, the checkpoint included. */
  wipe(): void
  close(): void
}

export interface StoreBackendFactory {
  /**
   * Opens (creating where needed) the backend of one store and changelog partition. What lies there in another `form`
   * (`storeForm`) is not kept; without one nothing is compared.
   */
  open(store: string, partition: number, form?: string): StoreBackend
  /** Makes all that `write` applies to backends of this partition one change: one flush, however many stores. */
  together(partition: number, write: () => void): void
  close(): void
}

export type StoreKind = 'key-value' | 'window' | 'session' | 'versioned'

/** Everything about a store that does not depend on a lane: made by the topology, plain data but for the serdes. */
export interface StoreSpec {
  readonly name: string
  readonly kind: StoreKind
  readonly keySerde: Serde<unknown>
  readonly valueSerde: Serde<unknown>
  /** Values carry the timestamp of the record they came from (tables and windows; not sessions and versioned ones). */
  readonly timestamped: boolean
  /** False: kept in memory alone, without a changelog (global stores, which have their topic). */
  readonly changelog: boolean
  /** The source topic that serves as changelog (optimization `reuse.ktable.source.topics`), else undefined. */
  readonly changelogTopic?: string | undefined
  /** The topic whose newest values are its rows: of the store of a table of a topic. */
  readonly sourceTopic?: string
  /** Window size (window stores), inactivity gap (session stores); undefined for the others. */
  readonly windowSizeMs?: number
  /** How far apart the windows of an aggregate begin; 0 where they go by their records. */
  readonly windowAdvanceMs?: number
  /** Window, session and versioned stores forget what is older than stream time − retention. */
  readonly retentionMs?: number | undefined
  /** Entries older than this (by their timestamp, against stream time) read as absent and are dropped in time. */
  readonly ttlMs?: number
  /** Window stores only: several values of one key at one time (stream–stream join buffers). */
  readonly retainDuplicates?: boolean
  /** Window stores only: all windows start at multiples of their size. */
  readonly tumbling?: boolean
}

/** Changes sealed by one commit barrier: goes to the changelog, later to the backend. */
export interface SealedChanges {
  readonly epoch: CommitEpoch
  /** Number of changes. */
  readonly count: number
  /**
   * Shows every change once, without keeping the records: cheaper than `changes`, and what a lane should use. The bytes
   * are valid until `visit` returns.
   */
  each(visit: (key: Uint8Array, value: Uint8Array | null, timestamp: number) => void): void
  /**
   * Deduplicated: at most one change a key (versioned stores: a key and version). In the form of the changelog topic's
   * records.
   */
  readonly changes: readonly ByteChange[]
  /** Timestamp for each change's changelog record. */
  readonly timestamps: readonly number[]
  /** Bytes of keys and values, about. */
  readonly bytes: number
}

/**
 * The rows that the open epoch has changed, one after the other, in the order in which each was changed first. A row that
 * came and went with the epoch is left out.
 */
export interface ChangedRows {
  /** Goes to the next one, which the fields then show; false: there is none. */
  next(): boolean
  readonly key: unknown
  /** Of a window or a session. */
  readonly start: number
  readonly end: number
  /** What names the row within its store: see `StoreLifecycle.rowOf`. */
  readonly row: string
  /** False: it was deleted. */
  readonly isThere: boolean
  /** Null where it was deleted. */
  readonly value: unknown
  /** Of use only where the row is there. */
  readonly timestamp: number
  /** The value before the epoch; null: there was none. */
  readonly before: unknown
}

/** The part of a store that the lane drives; operators never call it. */
export interface StoreLifecycle {
  readonly spec: StoreSpec
  readonly partition: number
  /** Bytes of the open epoch's changes, for the limit that forces a commit. */
  readonly uncommittedBytes: number
  /** There may be rows past their time that only a further epoch removes; nobody can read them any more. */
  readonly hasExpired: boolean
  /** Rows that the open epoch has changed: those of versions are not told. */
  readonly changedCount: number
  changedRows(): ChangedRows
  /** What names the row of a key, or of its window or session. */
  rowOf(key: unknown, start: number, end: number): string
  /** The rows, where they lie in columns: to be looked at ahead of the records that read them. */
  readonly rowPrefetch?: RowPrefetch | undefined
  /**
   * Writes from now on belong to the next epoch. Null when nothing changed. Rows are removed for which `upTo`, the
   * event time to which the epoch's input goes, is past their time.
   */
  seal(epoch: CommitEpoch, upTo?: number): SealedChanges | null
  /** The sealed epoch was committed by the broker: into the backend, atomically with the checkpoint. */
  applied(epoch: CommitEpoch, checkpoint: Checkpoint): void
  /** The epoch was committed, whether or not it changed this store. */
  committed(epoch: CommitEpoch): void
  /** Processing begins at this event time, with what is committed. */
  begin(time: number): void
  /** Drops the open and the sealed changes (in-place restart). */
  discard(): void
  /** Drops them for good: whoever still holds the store can read, but changes nothing any more. */
  detach(): void
  /** One run of changelog records during restore, oldest first, straight into the backend; made by `restoreEntry`. */
  restore(changes: readonly ByteChange[], checkpoint: Checkpoint): void
  /** Empties the store, to be restored from the start. */
  wipe(): void
  entries(): number
  close(): void
}

/*
 * Point operations take the key's serialised bytes as an optional last argument: a caller that has them at hand spares
 * the store the encoding. They must be the bytes of that key.
 */

/** A store of one value a key, as those see it who may only read: processors over global stores. */
export interface ReadOnlyKeyValueStore<K, V> {
  /** The value of a key, or undefined.  */
  get(key: K, keyBytes?: Uint8Array): V | undefined
  /**
   * Rows between two keys, both inclusive, in the order of the bytes of their keys. A bound that is undefined is open.
   */
  range(from?: K, to?: K): IterableIterator<[key: K, value: V]>
  /** All rows, in the order of the bytes of their keys. */
  all(): IterableIterator<[key: K, value: V]>
  /** About how many rows there are. */
  approximateEntries(): number
}

/**
 * A store of one value a key, declared by `keyValueStore`. Reads see what the same task wrote before; others see it
 * with the commit. Rows may be written while a walk (`range`, `all`, and those of the other kinds of stores) goes over
 * them: it shows no key that came after it began, none that has gone, and each row as it is when its turn comes. Wherever
 * `keyBytes` is asked for, leave it out unless you have the bytes of the key at hand.
 */
export interface KeyValueStore<K, V> extends ReadOnlyKeyValueStore<K, V> {
  /** Sets the value of a key. A null or undefined value deletes the row. */
  put(key: K, value: V | null | undefined, keyBytes?: Uint8Array): void
  /** Sets the value of a key that has none. Returns the value that was there, or undefined where it was set. */
  putIfAbsent(key: K, value: V): V | undefined
  /** Deletes the row of a key. Returns the value that was there. */
  delete(key: K): V | undefined
}

/** A value with the event time of the record that it comes from. */
export interface ValueAndTimestamp<V> {
  /** The value itself. */
  readonly value: V
  /** Epoch milliseconds. */
  readonly timestamp: number
}

/** A key-value store whose rows carry a timestamp: what the tables of the DSL use. */
export interface TimestampedKeyValueStore<K, V> extends ReadOnlyKeyValueStore<K, ValueAndTimestamp<V>> {
  /**
   * Sets the value of a key, with its event time in epoch milliseconds. A null or undefined value deletes the row.
   *
   * @throws EngineError `PROCESSING_FAILED` where the timestamp is no whole number from 0 on.
   */
  put(key: K, value: V | null | undefined, timestamp: number, keyBytes?: Uint8Array): void
}

export type { Window, Windowed } from '../serde/windowed.ts'

/**
 * A store of values by key and the start of their window, declared by `windowStore`, or that of a windowed aggregate.
 * All times are epoch milliseconds.
 */
export interface WindowStore<K, V> {
  /**
   * Sets the value of a window. A null value deletes it. `timestamp` is the event time of the row; the default is the
   * start of the window.
   *
   * @throws EngineError `PROCESSING_FAILED` where one of the times is no whole number from 0 on.
   */
  put(key: K, value: V | null | undefined, windowStart: number, timestamp?: number, keyBytes?: Uint8Array): void
  /** The row of one window, or undefined. */
  fetch(key: K, windowStart: number, keyBytes?: Uint8Array): ValueAndTimestamp<V> | undefined
  /** The windows of one key that start in [from, to], in the order of time; with `backward` newest first. */
  fetchRange(
    key: K,
    from: number,
    to: number,
    backward?: boolean,
    keyBytes?: Uint8Array,
  ): IterableIterator<[windowStart: number, row: ValueAndTimestamp<V>]>
  /** The windows of all keys that start in [from, to], by their start, then by the bytes of their keys. */
  fetchAll(from: number, to: number): IterableIterator<[key: K, windowStart: number, row: ValueAndTimestamp<V>]>
  /** All windows, by their start, then by the bytes of their keys. */
  all(): IterableIterator<[key: K, windowStart: number, row: ValueAndTimestamp<V>]>
}

/** Windows of one start, one after the other by their key bytes: what an operator reads when it tells many results. */
export interface WindowsOfStart {
  /** Goes to the next one, which the fields then show; false: there is none. */
  next(): boolean
  readonly key: unknown
  readonly value: unknown
  readonly timestamp: number
}

/**
 * A store of sessions by key, declared by `sessionStore`, or that of an aggregate over sessions. All times are epoch
 * milliseconds, and both ends are inclusive.
 */
export interface SessionStore<K, V> {
  /**
   * Sets the value of a session. A null value deletes it.
   *
   * @throws EngineError `PROCESSING_FAILED` where one of the times is no whole number from 0 on, or it ends before it begins.
   */
  put(key: K, start: number, end: number, value: V | null | undefined, keyBytes?: Uint8Array): void
  /**
   * The sessions of a key that end at `earliestEnd` or later and start at `latestStart` or earlier, by their end, then
   * by their start.
   */
  findSessions(
    key: K,
    earliestEnd: number,
    latestStart: number,
    keyBytes?: Uint8Array,
  ): IterableIterator<[start: number, end: number, value: V]>
  /** The value of one session, or undefined. */
  fetchSession(key: K, start: number, end: number, keyBytes?: Uint8Array): V | undefined
  /** All sessions. */
  all(): IterableIterator<[key: K, start: number, end: number, value: V]>
}

/** A value with the time for which it holds, epoch milliseconds. */
export interface VersionedRecord<V> {
  /** The value itself. */
  readonly value: V
  /** The first instant at which it holds. */
  readonly validFrom: number
  /** The instant from which the next version holds; undefined for the newest. */
  readonly validTo?: number
}

/**
 * A store of the history of each key, declared by `versionedStore`, or that of a versioned table. All times are epoch
 * milliseconds.
 */
export interface VersionedStore<K, V> {
  /**
   * Adds a version that holds from `timestamp` on. Returns until when it holds, or null where it is older than the
   * history that is kept, and was refused.
   *
   * @throws EngineError `PROCESSING_FAILED` where the timestamp is no whole number from 0 on.
   */
  put(
    key: K,
    value: V | null | undefined,
    timestamp: number,
    keyBytes?: Uint8Array,
  ): { validTo: number | undefined } | null
  /** The version that holds at `asOf`, or the newest one. */
  get(key: K, asOf?: number, keyBytes?: Uint8Array): VersionedRecord<V> | undefined
  /** The newest version of each key that has a value. */
  all(): IterableIterator<[key: K, version: VersionedRecord<V>]>
}

export type AnyStore =
  | KeyValueStore<unknown, unknown>
  | TimestampedKeyValueStore<unknown, unknown>
  | WindowStore<unknown, unknown>
  | SessionStore<unknown, unknown>
  | VersionedStore<unknown, unknown>
