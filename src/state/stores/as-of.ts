/**
 * What forgets by time, as it is for who reads it at a time of his own. The store itself goes by what its task has come
 * to: how far that is beside a record depends on which others still wait for a function.
 */
import type {
  AnyStore,
  KeyValueStore,
  SessionStore,
  StoreSpec,
  TimestampedKeyValueStore,
  ValueAndTimestamp,
  VersionedRecord,
  VersionedStore,
  WindowStore,
} from '../contract.ts'
import { isTime } from '../rows/bytes.ts'
import { PlainKeyValueStore, StampedKeyValueStore } from './key-value-store.ts'
import { VersionedRowStore } from './versioned-store.ts'

/** Event time of the reader. */
export interface ReaderTime {
  /** Before his record, never behind what is settled: windows and sessions go by it. */
  before(): number
  /** His record included: a `ttl` goes by it, and history. Undefined: as far as event time has come. */
  current(): number | undefined
}

/** Stores that do not forget by time stay as they are. */
export function asOf(store: AnyStore, { kind, retentionMs, ttlMs }: StoreSpec, time: ReaderTime): AnyStore {
  if (kind === 'key-value') {
    if (ttlMs === undefined) return store
    if (store instanceof PlainKeyValueStore) return new RowsAsOf(store, time)
    return store instanceof StampedKeyValueStore ? new StampedRowsAsOf(store, time) : store
  }
  if (retentionMs === undefined) return store
  const horizon = (): number => time.before() - retentionMs
  if (kind === 'window') return new WindowsAsOf(store as WindowStore<unknown, unknown>, horizon)
  if (kind === 'session') return new SessionsAsOf(store as SessionStore<unknown, unknown>, horizon)
  return store instanceof VersionedRowStore ? new VersionsAsOf(store, time) : store
}

abstract class AgingRows<S extends PlainKeyValueStore | StampedKeyValueStore, V> {
  protected readonly store: S
  protected readonly time: ReaderTime

  constructor(store: S, time: ReaderTime) {
    this.store = store
    this.time = time
  }

  get(key: unknown, keyBytes?: Uint8Array): V | undefined {
    return this.store.getAt(key, this.time.current(), keyBytes) as V | undefined
  }

  range(from?: unknown, to?: unknown): IterableIterator<[key: unknown, value: V]> {
    return this.store.rangeAt(from, to, this.time.current()) as IterableIterator<[key: unknown, value: V]>
  }

  all(): IterableIterator<[key: unknown, value: V]> {
    return this.range()
  }

  approximateEntries(): number {
    return this.store.approximateEntries()
  }
}

class RowsAsOf extends AgingRows<PlainKeyValueStore, unknown> implements KeyValueStore<unknown, unknown> {
  put(key: unknown, value: unknown, keyBytes?: Uint8Array): void {
    this.store.putAt(key, value, this.time.current(), keyBytes)
  }

  putIfAbsent(key: unknown, value: unknown): unknown {
    const present = this.get(key)
    if (present === undefined) this.put(key, value)
    return present
  }

  delete(key: unknown): unknown {
    const present = this.get(key)
    this.put(key, null)
    return present
  }
}

class StampedRowsAsOf
  extends AgingRows<StampedKeyValueStore, ValueAndTimestamp<unknown>>
  implements TimestampedKeyValueStore<unknown, unknown>
{
  put(key: unknown, value: unknown, timestamp: number, keyBytes?: Uint8Array): void {
    this.store.put(key, value, timestamp, keyBytes)
  }
}

class WindowsAsOf implements WindowStore<unknown, unknown> {
  readonly #store: WindowStore<unknown, unknown>
  readonly #horizon: () => number

  constructor(store: WindowStore<unknown, unknown>, horizon: () => number) {
    this.#store = store
    this.#horizon = horizon
  }

  put(key: unknown, value: unknown, windowStart: number, timestamp?: number, keyBytes?: Uint8Array): void {
    // The store refuses what is no time, however old it is.
    if (!isTime(windowStart) || windowStart > this.#horizon())
      this.#store.put(key, value, windowStart, timestamp, keyBytes)
  }

  fetch(key: unknown, windowStart: number, keyBytes?: Uint8Array): ValueAndTimestamp<unknown> | undefined {
    return windowStart > this.#horizon() ? this.#store.fetch(key, windowStart, keyBytes) : undefined
  }

  fetchRange(
    key: unknown,
    from: number,
    to: number,
    backward?: boolean,
    keyBytes?: Uint8Array,
  ): IterableIterator<[windowStart: number, row: ValueAndTimestamp<unknown>]> {
    return this.#store.fetchRange(key, Math.max(from, this.#horizon() + 1), to, backward, keyBytes)
  }

  fetchAll(
    from: number,
    to: number,
  ): IterableIterator<[key: unknown, windowStart: number, row: ValueAndTimestamp<unknown>]> {
    return this.#store.fetchAll(Math.max(from, this.#horizon() + 1), to)
  }

  all(): IterableIterator<[key: unknown, windowStart: number, row: ValueAndTimestamp<unknown>]> {
    return this.fetchAll(0, Number.MAX_SAFE_INTEGER)
  }
}

class SessionsAsOf implements SessionStore<unknown, unknown> {
  readonly #store: SessionStore<unknown, unknown>
  readonly #horizon: () => number

  constructor(store: SessionStore<unknown, unknown>, horizon: () => number) {
    this.#store = store
    this.#horizon = horizon
  }

  put(key: unknown, start: number, end: number, value: unknown, keyBytes?: Uint8Array): void {
    if (!isTime(end) || end < start || end > this.#horizon()) this.#store.put(key, start, end, value, keyBytes)
  }

  findSessions(
    key: unknown,
    earliestEnd: number,
    latestStart: number,
    keyBytes?: Uint8Array,
  ): IterableIterator<[start: number, end: number, value: unknown]> {
    return this.#store.findSessions(key, Math.max(earliestEnd, this.#horizon() + 1), latestStart, keyBytes)
  }

  fetchSession(key: unknown, start: number, end: number, keyBytes?: Uint8Array): unknown {
    return end > this.#horizon() ? this.#store.fetchSession(key, start, end, keyBytes) : undefined
  }

  all(): IterableIterator<[key: unknown, start: number, end: number, value: unknown]> {
    return this.#kept(this.#horizon())
  }

  *#kept(horizon: number): IterableIterator<[key: unknown, start: number, end: number, value: unknown]> {
    for (const session of this.#store.all()) if (session[2] > horizon) yield session
  }
}

class VersionsAsOf implements VersionedStore<unknown, unknown> {
  readonly #store: VersionedRowStore
  readonly #time: ReaderTime

  constructor(store: VersionedRowStore, time: ReaderTime) {
    this.#store = store
    this.#time = time
  }

  put(key: unknown, value: unknown, timestamp: number, keyBytes?: Uint8Array): { validTo: number | undefined } | null {
    return this.#store.putAt(key, value, timestamp, this.#now, keyBytes)
  }

  get(key: unknown, asOf?: number, keyBytes?: Uint8Array): VersionedRecord<unknown> | undefined {
    return this.#store.getAt(key, asOf, this.#now, keyBytes)
  }

  all(): IterableIterator<[key: unknown, version: VersionedRecord<unknown>]> {
    return this.#store.all()
  }

  /** A timer looks back from its own time, however far event time has gone past it at once. */
  get #now(): number {
    return this.#time.current() ?? this.#time.before()
  }
}
