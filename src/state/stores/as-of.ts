/**
 * What forgets by time, as it is for who reads it at a time of his own. The store itself forgets by the time that is
 * settled: how far that has come beside a record depends on which others still wait for a function.
 */
import type { AnyStore, SessionStore, StoreSpec, ValueAndTimestamp, WindowStore } from '../contract.ts'

/** `time`: event time of the reader, never behind what is settled. Stores that do not forget by time stay as they are. */
export function asOf(store: AnyStore, { kind, retentionMs }: StoreSpec, time: () => number): AnyStore {
  if (retentionMs === undefined) return store
  const horizon = (): number => time() - retentionMs
  if (kind === 'window') return new WindowsAsOf(store as WindowStore<unknown, unknown>, horizon)
  if (kind === 'session') return new SessionsAsOf(store as SessionStore<unknown, unknown>, horizon)
  return store
}

class WindowsAsOf implements WindowStore<unknown, unknown> {
  readonly #store: WindowStore<unknown, unknown>
  readonly #horizon: () => number

  constructor(store: WindowStore<unknown, unknown>, horizon: () => number) {
    this.#store = store
    this.#horizon = horizon
  }

  put(key: unknown, value: unknown, windowStart: number, timestamp?: number, keyBytes?: Uint8Array): void {
    if (windowStart > this.#horizon()) this.#store.put(key, value, windowStart, timestamp, keyBytes)
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
    if (end > this.#horizon()) this.#store.put(key, start, end, value, keyBytes)
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
