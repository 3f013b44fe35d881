/** Windows by key and start, within a retention. */
import type { CommitEpoch } from '../../base/ids.ts'
import { BaseStore, type StoreOptions } from './base-store.ts'
import { afterPrefix, int64At, int64String, isTime, keyString, timeFrom, timeUpTo } from '../rows/bytes.ts'
import type {
  SealedChanges,
  StoreBackend,
  StoreSpec,
  ValueAndTimestamp,
  WindowsOfStart,
  WindowStore,
} from '../contract.ts'
import {
  segmentMs,
  segmentPrefix,
  segmentStart,
  sequenceOf,
  windowRow,
  windowStartOf,
  windowSuffix,
} from '../rows/layout.ts'
import type { Row } from '../rows/row.ts'
import type { RowName } from './told-rows.ts'
import type { WindowCursor } from '../windows/window-cursor.ts'
import type { KeyRow } from '../windows/window-keys.ts'
import type { WindowRows } from '../windows/window-rows.ts'

/**
 * Rows of old segments that one commit removes at most, so that a large segment does not hold up a commit; more where
 * the commit itself brings many, or the store would grow without end.
 */
const dropsPerCommit = 4096

/** What a walk over the windows of a key takes of a segment. */
interface Within {
  readonly segment: number
  readonly first: number
  readonly last: number
  readonly backward: boolean
  /** Rows that came later are not shown. */
  readonly youngest: number
}

/** A row of a key. */
interface Found {
  readonly start: number
  readonly sequence: number
  readonly row: ValueAndTimestamp<unknown>
}

export class TimeWindowStore extends BaseStore implements WindowStore<unknown, unknown> {
  declare protected readonly overlay: WindowRows
  readonly #intervalMs: number
  readonly #duplicates: boolean
  /** Last sequence number by key and start, for those put since the last commit. */
  readonly #sequences = new Map<string, number>()

  constructor(spec: StoreSpec, backend: StoreBackend, partition: number, options: StoreOptions) {
    super(spec, backend, partition, options)
    this.#intervalMs = segmentMs(spec)
    this.#duplicates = spec.retainDuplicates === true
  }

  put(key: unknown, value: unknown, windowStart: number, timestamp = windowStart, keyBytes?: Uint8Array): void {
    this.checkTime(windowStart, 'start')
    this.checkTime(timestamp, 'timestamp')
    const measured = this.meter?.began('put')
    if (!this.#isForgotten(windowStart)) this.#put(key, value, windowStart, timestamp, keyBytes)
    if (measured) this.meter?.ended('put')
  }

  #put(key: unknown, value: unknown, windowStart: number, timestamp: number, keyBytes: Uint8Array | undefined): void {
    const keyText = this.keyOf(key, keyBytes)
    if (value === null || value === undefined) {
      this.#remove(keyText, windowStart)
      return
    }
    this.clock.observe(windowStart)
    const sequence = this.#duplicates ? this.#nextSequence(keyText, windowStart) : 0
    if (sequence === 0) {
      this.checkLength(keyText.length + segmentPrefix + windowSuffix)
      this.overlay.putWindow(keyText, windowStart, value, timestamp)
    } else this.putValue(windowRow(this.#intervalMs, keyText, windowStart, sequence), value, timestamp)
  }

  fetch(key: unknown, windowStart: number, keyBytes?: Uint8Array): ValueAndTimestamp<unknown> | undefined {
    const measured = this.meter?.began('get')
    if (!isTime(windowStart) || this.#isForgotten(windowStart)) return undefined
    const keyText = this.keyOf(key, keyBytes)
    if (this.#duplicates) {
      for (const { row } of this.#ofKey(keyText, windowStart, windowStart, false)) return row
      return undefined
    }
    const row = this.overlay.getWindow(keyText, windowStart)
    if (measured) this.meter?.ended('get')
    return row
  }

  /** As `fetch`, for a reader behind event time: as long as the row is there. He says himself what is over for him. */
  fetchKept(key: unknown, windowStart: number): ValueAndTimestamp<unknown> | undefined {
    return isTime(windowStart) ? this.overlay.getWindow(this.keyOf(key, undefined), windowStart) : undefined
  }

  *fetchRange(
    key: unknown,
    from: number,
    to: number,
    backward = false,
    keyBytes?: Uint8Array,
  ): IterableIterator<[windowStart: number, row: ValueAndTimestamp<unknown>]> {
    this.meter?.began('get')
    for (const { start, row } of this.#ofKey(this.keyOf(key, keyBytes), from, to, backward)) yield [start, row]
  }

  *fetchAll(
    from: number,
    to: number,
  ): IterableIterator<[key: unknown, windowStart: number, row: ValueAndTimestamp<unknown>]> {
    this.meter?.began('get')
    const first = this.#firstKept(from)
    const last = timeUpTo(to)
    const only = first === last ? this.overlay.windowsAt(first) : undefined
    if (only !== undefined) {
      while (only.next()) yield [this.keyFrom(only.key), first, { value: only.value, timestamp: only.timestamp }]
      return
    }
    const { youngest } = this.overlay
    for (const segment of this.#segments(first, last, false)) {
      const rows: Array<[at: string, row: ValueAndTimestamp<unknown>]> = []
      for (const [at, row] of this.overlay.range(int64String(segment), int64String(segment + 1), false, youngest)) {
        const start = windowStartOf(at)
        if (start >= first && start <= last) rows.push([at, this.#valueOf(row)])
      }
      rows.sort(byStartThenKey)
      const { writes } = this.overlay
      for (const [at, found] of rows) {
        const row = writes === this.overlay.writes ? found : this.#again(at, youngest)
        if (row !== undefined) yield [this.keyFrom(at.slice(8, -windowSuffix)), windowStartOf(at), row]
      }
    }
  }

  /** As `fetchAll` for windows of one start; undefined where that has to look at others as well. */
  windowsOf(windowStart: number): WindowsOfStart | undefined {
    if (this.#firstKept(windowStart) !== windowStart) return undefined
    const cursor = this.overlay.windowsAt(windowStart)
    if (cursor === undefined) return undefined
    this.meter?.began('get')
    return new Windows(cursor, (key) => this.keyFrom(key))
  }

  all(): IterableIterator<[key: unknown, windowStart: number, row: ValueAndTimestamp<unknown>]> {
    return this.fetchAll(0, Number.MAX_SAFE_INTEGER)
  }

  override rowOf(key: unknown, start: number): string {
    return windowRow(this.#intervalMs, this.keyOf(key, undefined), start, 0)
  }

  protected override nameRow(row: string, into: RowName): void {
    into.key = this.keyFrom(row.slice(segmentPrefix, -windowSuffix))
    into.start = windowStartOf(row)
  }

  override get hasExpired(): boolean {
    const horizon = this.#removable(this.clock.horizon(this.streamTime()))
    return this.overlay.isExpired(horizon) || this.overlay.isExpiredBelow(horizon)
  }

  override seal(epoch: CommitEpoch, upTo?: number): SealedChanges | null {
    this.#sequences.clear()
    return super.seal(epoch, upTo)
  }

  override discard(): void {
    super.discard()
    this.#sequences.clear()
  }

  protected override restored(key: Uint8Array): void {
    this.clock.observeCommitted(windowStartOf(keyString(key)))
  }

  protected override expire(time: number): readonly string[] {
    const horizon = this.#removable(this.clock.horizon(time))
    const most = Math.max(dropsPerCommit, 2 * this.overlay.changedRows)
    this.overlay.expire(horizon, most)
    this.overlay.expireBelow(horizon, most)
    return []
  }

  /** What starts at this time or before is taken out. On a disk, windows are not looked through one by one. */
  #removable(horizon: number): number {
    if (horizon < 0 || this.overlay.takesOne || this.spec.tumbling) return horizon
    return segmentStart(horizon + 1, this.#intervalMs) - 1
  }

  #isForgotten(windowStart: number): boolean {
    // Nearly every window is newer than what any time could make the horizon: then it need not be asked.
    return windowStart <= this.clock.kept && windowStart <= this.clock.horizon(this.streamTime())
  }

  #firstKept(from: number): number {
    return Math.max(timeFrom(from), this.clock.horizon(this.streamTime()) + 1)
  }

  /** What a walk has found before, as it is now. */
  #again(at: string, youngest: number): ValueAndTimestamp<unknown> | undefined {
    const row = this.overlay.again(at, youngest)
    return row && this.#valueOf(row)
  }

  #valueOf(row: Row): ValueAndTimestamp<unknown> {
    return { value: this.value(row), timestamp: row.timestamp }
  }

  #remove(key: string, windowStart: number): void {
    if (!this.#duplicates) {
      this.overlay.delete(windowRow(this.#intervalMs, key, windowStart, 0))
      return
    }
    const rows = [...this.#ofKey(key, windowStart, windowStart, false)]
    for (const { sequence } of rows) this.overlay.delete(windowRow(this.#intervalMs, key, windowStart, sequence))
    // The next one is counted from what is there, as it would be in the next epoch.
    this.#sequences.delete(key + int64String(windowStart))
  }

  *#ofKey(key: string, from: number, to: number, backward: boolean): IterableIterator<Found> {
    const first = this.#firstKept(from)
    const last = timeUpTo(to)
    const { youngest } = this.overlay
    for (const segment of this.#segments(first, last, backward)) {
      const rows = this.overlay.ofKey(key, segment, first, last, youngest)
      if (rows === undefined) {
        yield* this.#inBoth(key, { segment, first, last, backward, youngest })
        continue
      }
      for (let i = 0; i < rows.length; i++) {
        const found = rows[backward ? rows.length - 1 - i : i] as KeyRow
        const row = found.read(this.codec)
        if (row === undefined) continue
        const { start, sequence } = found
        yield { start, sequence, row }
      }
    }
  }

  /** Rows of a key in a segment of which the backend may have some. */
  *#inBoth(key: string, { segment, first, last, backward, youngest }: Within): IterableIterator<Found> {
    const length = 8 + key.length + windowSuffix
    const prefix = int64String(segment) + key
    const low = prefix + int64String(Math.max(first, segment))
    const high = afterPrefix(prefix + int64String(Math.min(last, segment + this.#intervalMs - 1)))
    for (const [at, row] of this.overlay.range(low, high, backward, youngest)) {
      // A longer key may begin with this key and the bytes of a time.
      if (at.length !== length) continue
      yield { start: windowStartOf(at), sequence: sequenceOf(at), row: this.#valueOf(row) }
    }
  }

  /** Segments with rows that windows from `first` to `last` may lie in. */
  *#segments(first: number, last: number, backward: boolean): IterableIterator<number> {
    if (last < first) return
    const interval = this.#intervalMs
    const [low, high] = [segmentStart(first, interval), segmentStart(last, interval)]
    if ((high - low) / interval < 4) {
      for (let i = 0; i <= (high - low) / interval; i++) yield backward ? high - i * interval : low + i * interval
      return
    }
    const known = this.overlay.segmentStarts(low)?.filter((start) => start <= high)
    if (known !== undefined) {
      yield* backward ? known.reverse() : known
      return
    }
    // Many: only those that exist, each found by one step from the one before.
    let [from, to] = [int64String(low), int64String(high + 1)]
    for (;;) {
      const next = this.overlay.range(from, to, backward).next()
      if (next.done) return
      const segment = int64At(next.value[0], 0)
      yield segment
      if (backward) to = int64String(segment)
      else from = int64String(segment + 1)
    }
  }

  #nextSequence(key: string, windowStart: number): number {
    const prefix = key + int64String(windowStart)
    let last = this.#sequences.get(prefix)
    if (last === undefined) {
      last = -1
      for (const { sequence } of this.#ofKey(key, windowStart, windowStart, true)) {
        last = sequence
        break
      }
    }
    this.#sequences.set(prefix, last + 1)
    return last + 1
  }
}

class Windows implements WindowsOfStart {
  readonly #cursor: WindowCursor
  readonly #keyFrom: (key: string) => unknown

  constructor(cursor: WindowCursor, keyFrom: (key: string) => unknown) {
    this.#cursor = cursor
    this.#keyFrom = keyFrom
  }

  next(): boolean {
    return this.#cursor.next()
  }

  get key(): unknown {
    return this.#keyFrom(this.#cursor.key)
  }

  get value(): unknown {
    return this.#cursor.value
  }

  get timestamp(): number {
    return this.#cursor.timestamp
  }
}

function byStartThenKey(a: readonly [string, unknown], b: readonly [string, unknown]): number {
  const difference = windowStartOf(a[0]) - windowStartOf(b[0])
  if (difference !== 0) return difference
  // A key may go on with what looks like the start behind a shorter one: the keys are compared without it.
  const [x, y] = [a[0].slice(segmentPrefix, -windowSuffix), b[0].slice(segmentPrefix, -windowSuffix)]
  if (x !== y) return x < y ? -1 : 1
  return a[0] < b[0] ? -1 : 1
}
