/**
 * Rows by window for two stages of one task: the one that writes them, and a deeper one that reads them as they were at
 * its own record. Both name a row by its `Windowed` key, as the changes that are told do.
 */
import type {
  AnyStore,
  SessionStore,
  StoreSpec,
  ValueAndTimestamp,
  Windowed,
  WindowsOfStart,
  WindowStore,
} from '../../state/contract.ts'
import type { SessionWindowStore } from '../../state/stores/session-store.ts'
import type { TimeWindowStore } from '../../state/stores/window-store.ts'

export type WindowedRow = ValueAndTimestamp<unknown> | undefined
type Key = Pick<Windowed<unknown>, 'key' | 'start' | 'end'>

/** What a deeper stage reads. `time`: event time before its record; what is past its retention then is over. */
export interface WindowedRowReader {
  readonly spec: StoreSpec
  rowAt(key: Key, time: number): WindowedRow
}

export const isByWindow = ({ kind }: StoreSpec): boolean => kind === 'window' || kind === 'session'

/** By what a row is over: the start of a window, the end of a session. */
export function isOver({ kind, retentionMs }: StoreSpec, { start, end }: Key, time: number): boolean {
  return retentionMs !== undefined && (kind === 'window' ? start : end) <= time - retentionMs
}

/** The row itself, over or not. */
export function keptRow(store: AnyStore, { key, start, end }: Key): WindowedRow {
  const { spec } = store as unknown as TimeWindowStore
  if (spec.kind === 'window') return (store as unknown as TimeWindowStore).fetchKept(key, start)
  const value = (store as unknown as SessionWindowStore).fetchKept(key, start, end)
  return value === undefined || value === null ? undefined : { value, timestamp: end }
}

/** The store for the operator that writes it: `note` is told of each row before it changes. */
export function notingWindows(store: AnyStore, note: (key: Key) => void): AnyStore {
  const { spec } = store as unknown as TimeWindowStore
  return spec.kind === 'window'
    ? (new NotingWindows(store as unknown as TimeWindowStore, note) as unknown as AnyStore)
    : (new NotingSessions(store as unknown as SessionWindowStore, note) as unknown as AnyStore)
}

class NotingWindows implements WindowStore<unknown, unknown> {
  readonly spec: StoreSpec
  readonly #store: TimeWindowStore
  readonly #note: (key: Key) => void

  constructor(store: TimeWindowStore, note: (key: Key) => void) {
    this.spec = store.spec
    this.#store = store
    this.#note = note
  }

  put(key: unknown, value: unknown, windowStart: number, timestamp?: number, keyBytes?: Uint8Array): void {
    this.#note({ key, start: windowStart, end: Number.NaN })
    this.#store.put(key, value, windowStart, timestamp, keyBytes)
  }

  fetch(key: unknown, windowStart: number, keyBytes?: Uint8Array): WindowedRow {
    return this.#store.fetch(key, windowStart, keyBytes)
  }

  fetchRange(
    ...range: Parameters<TimeWindowStore['fetchRange']>
  ): IterableIterator<[windowStart: number, row: ValueAndTimestamp<unknown>]> {
    return this.#store.fetchRange(...range)
  }

  fetchAll(
    from: number,
    to: number,
  ): IterableIterator<[key: unknown, windowStart: number, row: ValueAndTimestamp<unknown>]> {
    return this.#store.fetchAll(from, to)
  }

  windowsOf(windowStart: number): WindowsOfStart | undefined {
    return this.#store.windowsOf(windowStart)
  }

  all(): IterableIterator<[key: unknown, windowStart: number, row: ValueAndTimestamp<unknown>]> {
    return this.#store.all()
  }
}

class NotingSessions implements SessionStore<unknown, unknown> {
  readonly spec: StoreSpec
  readonly #store: SessionWindowStore
  readonly #note: (key: Key) => void

  constructor(store: SessionWindowStore, note: (key: Key) => void) {
    this.spec = store.spec
    this.#store = store
    this.#note = note
  }

  put(key: unknown, start: number, end: number, value: unknown, keyBytes?: Uint8Array): void {
    this.#note({ key, start, end })
    this.#store.put(key, start, end, value, keyBytes)
  }

  findSessions(
    ...range: Parameters<SessionWindowStore['findSessions']>
  ): IterableIterator<[start: number, end: number, value: unknown]> {
    return this.#store.findSessions(...range)
  }

  fetchSession(key: unknown, start: number, end: number, keyBytes?: Uint8Array): unknown {
    return this.#store.fetchSession(key, start, end, keyBytes)
  }

  all(): IterableIterator<[key: unknown, start: number, end: number, value: unknown]> {
    return this.#store.all()
  }
}
