/** Windows by key and start, within a retention. */
import type { CommitEpoch } from '../base/ids.ts'
import { BaseStore, type StoreOptions } from './base-store.ts'
import { afterPrefix, clampTime, int64At, int64String, keyString } from './bytes.ts'
import type { SealedChanges, StoreBackend, StoreSpec, ValueAndTimestamp, WindowStore } from './contract.ts'
import { segmentMs, segmentPrefix, segmentStart, sequenceOf, windowRow, windowStartOf, windowSuffix } from './layout.ts'
import type { Node } from './node.ts'
import type { Overlay } from './overlay.ts'
import type { Row } from './row.ts'

/**
 * Rows of old segments that one commit removes at most, so that a large segment does not hold up a commit; more where
 * the commit itself brings many, or the store would grow without end.
 */
const dropsPerCommit = 4096

export class TimeWindowStore extends BaseStore implements WindowStore<unknown, unknown> {
  declare protected readonly overlay: Overlay
  readonly #intervalMs: number
  readonly #duplicates: boolean
  /** Last sequence number by key and start, for those put since the last commit. */
  readonly #sequences = new Map<string, number>()
  /** No row of a backend of bytes lies in a segment that begins earlier. */
  #oldest = 0

  constructor(spec: StoreSpec, backend: StoreBackend, partition: number, options: StoreOptions) {
    super(spec, backend, partition, options)
    this.#intervalMs = segmentMs(spec)
    this.#duplicates = spec.retainDuplicates === true
  }

  put(key: unknown, value: unknown, windowStart: number, timestamp = windowStart, keyBytes?: Uint8Array): void {
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
    if (windowStart < this.#oldest) this.#oldest = windowStart
    const sequence = this.#duplicates ? this.#nextSequence(keyText, windowStart) : 0
    if (sequence === 0) {
      this.checkLength(keyText.length + segmentPrefix + windowSuffix)
      this.overlay.putWindow(keyText, windowStart, value, timestamp)
    } else this.putValue(windowRow(this.#intervalMs, keyText, windowStart, sequence), value, timestamp)
  }

  fetch(key: unknown, windowStart: number, keyBytes?: Uint8Array): ValueAndTimestamp<unknown> | undefined {
    const measured = this.meter?.began('get')
    if (windowStart < 0 || this.#isForgotten(windowStart)) return undefined
    const keyText = this.keyOf(key, keyBytes)
    if (this.#duplicates) {
      for (const [, row] of this.#ofKey(keyText, windowStart, windowStart, false)) return this.#valueOf(row)
      return undefined
    }
    const row = this.overlay.getWindow(keyText, windowStart)
    if (measured) this.meter?.ended('get')
    return row && this.#valueOf(row)
  }

  *fetchRange(
    key: unknown,
    from: number,
    to: number,
    backward = false,
    keyBytes?: Uint8Array,
  ): IterableIterator<[windowStart: number, row: ValueAndTimestamp<unknown>]> {
    this.meter?.began('get')
    for (const [at, row] of this.#ofKey(this.keyOf(key, keyBytes), from, to, backward)) {
      yield [windowStartOf(at), this.#valueOf(row)]
    }
  }

  *fetchAll(
    from: number,
    to: number,
  ): IterableIterator<[key: unknown, windowStart: number, row: ValueAndTimestamp<unknown>]> {
    this.meter?.began('get')
    const first = this.#firstKept(from)
    const last = Math.min(to, Number.MAX_SAFE_INTEGER)
    const only = first === last ? this.overlay.windowsAt(first) : undefined
    if (only !== undefined) {
      only.sort(byKey)
      for (const { key, top } of only) {
        if (!top.isDeleted) yield [this.keyFrom(key), first, this.#valueOf(top)]
      }
      return
    }
    for (const segment of this.#segments(first, last, false)) {
      const rows: Array<[at: string, row: ValueAndTimestamp<unknown>]> = []
      for (const [at, row] of this.overlay.range(int64String(segment), int64String(segment + 1))) {
        const start = windowStartOf(at)
        if (start >= first && start <= last) rows.push([at, this.#valueOf(row)])
      }
      rows.sort(byStartThenKey)
      for (const [at, row] of rows) yield [this.keyFrom(at.slice(8, -windowSuffix)), windowStartOf(at), row]
    }
  }

  all(): IterableIterator<[key: unknown, windowStart: number, row: ValueAndTimestamp<unknown>]> {
    return this.fetchAll(0, Number.MAX_SAFE_INTEGER)
  }

  override get isForgetting(): boolean {
    const horizon = this.clock.horizon(this.streamTime())
    return this.overlay.isExpired(horizon) ?? this.#before(this.#forgottenUpTo(horizon), 1).length > 0
  }

  override seal(epoch: CommitEpoch, upTo?: number): SealedChanges | null {
    this.#sequences.clear()
    return super.seal(epoch, upTo)
  }

  override discard(): void {
    super.discard()
    this.#sequences.clear()
    this.#oldest = 0
  }

  protected override restored(key: Uint8Array, value: Uint8Array | null): void {
    const windowStart = windowStartOf(keyString(key))
    this.clock.observeCommitted(windowStart)
    if (value !== null && windowStart < this.#oldest) this.#oldest = windowStart
  }

  protected override expire(time: number): readonly string[] {
    const horizon = this.clock.horizon(time)
    const most = Math.max(dropsPerCommit, 2 * this.overlay.changes)
    if (!this.overlay.expire(horizon, most)) this.forget(this.#before(this.#forgottenUpTo(horizon), most))
    return []
  }

  /** Start of the segments that stay. Whole segments go: all their windows start at or before the horizon. */
  #forgottenUpTo(horizon: number): number {
    return horizon < 0 ? 0 : segmentStart(horizon + 1, this.#intervalMs)
  }

  /**
   * Rows in a backend of bytes whose segments begin before this one, up to `most`; they are to be taken out. With 1 it is
   * only asked whether there is any.
   */
  #before(segment: number, most: number): readonly string[] {
    if (this.#oldest >= segment) return []
    const rows: string[] = []
    // What was taken out before is still there as deletions, many of them: they are not walked through again.
    const from = this.#oldest > 0 ? int64String(segmentStart(this.#oldest, this.#intervalMs)) : undefined
    for (const [at] of this.overlay.range(from, int64String(segment))) {
      rows.push(at)
      if (rows.length === most) break
    }
    const next = rows.length === most ? rows[most - 1] : undefined
    this.#oldest = next === undefined ? segment : int64At(next, 0)
    return rows
  }

  #isForgotten(windowStart: number): boolean {
    // Nearly every window is newer than what any time could make the horizon: then it need not be asked.
    return windowStart <= this.clock.kept && windowStart <= this.clock.horizon(this.streamTime())
  }

  #firstKept(from: number): number {
    return Math.max(clampTime(from), this.clock.horizon(this.streamTime()) + 1)
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
    for (const [at] of rows) this.overlay.delete(at)
    // The next one is counted from what is there, as it would be in the next epoch.
    this.#sequences.delete(key + int64String(windowStart))
  }

  *#ofKey(key: string, from: number, to: number, backward: boolean): IterableIterator<[at: string, row: Row]> {
    const first = this.#firstKept(from)
    const last = Math.min(to, Number.MAX_SAFE_INTEGER)
    const length = 8 + key.length + windowSuffix
    for (const segment of this.#segments(first, last, backward)) {
      const prefix = int64String(segment) + key
      const low = prefix + int64String(Math.max(first, segment))
      const high = afterPrefix(prefix + int64String(Math.min(last, segment + this.#intervalMs - 1)))
      for (const entry of this.overlay.range(low, high, backward)) {
        // A longer key may begin with this key and the bytes of a time.
        if (entry[0].length === length) yield entry
      }
    }
  }

  /** Segments with rows that windows from `first` to `last` may lie in. */
  *#segments(first: number, last: number, backward: boolean): IterableIterator<number> {
    if (last < first || last < 0) return
    const interval = this.#intervalMs
    const [low, high] = [segmentStart(first, interval), segmentStart(last, interval)]
    if ((high - low) / interval < 4) {
      for (let i = 0; i <= (high - low) / interval; i++) yield backward ? high - i * interval : low + i * interval
      return
    }
    const known = this.overlay.segmentStarts?.filter((start) => start >= low && start <= high)
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
      for (const [at] of this.#ofKey(key, windowStart, windowStart, true)) {
        last = sequenceOf(at)
        break
      }
    }
    this.#sequences.set(prefix, last + 1)
    return last + 1
  }
}

function byKey(a: Node, b: Node): number {
  return a.key < b.key ? -1 : 1
}

function byStartThenKey(a: readonly [string, unknown], b: readonly [string, unknown]): number {
  const difference = windowStartOf(a[0]) - windowStartOf(b[0])
  if (difference !== 0) return difference
  // A key may go on with what looks like the start behind a shorter one: the keys are compared without it.
  const [x, y] = [a[0].slice(segmentPrefix, -windowSuffix), b[0].slice(segmentPrefix, -windowSuffix)]
  if (x !== y) return x < y ? -1 : 1
  return a[0] < b[0] ? -1 : 1
}
