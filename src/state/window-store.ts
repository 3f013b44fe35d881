/** Windows by key and start, within a retention. */
import type { CommitEpoch } from '../base/ids.ts'
import { BaseStore, type StoreOptions } from './base-store.ts'
import { afterPrefix, clampTime, int64At, int64String, keyString } from './bytes.ts'
import type {
  ByteChange,
  Checkpoint,
  SealedChanges,
  StoreBackend,
  StoreSpec,
  ValueAndTimestamp,
  WindowStore,
} from './contract.ts'
import { segmentMs, segmentPrefix, segmentStart, sequenceOf, windowRow, windowStartOf, windowSuffix } from './layout.ts'
import type { Node } from './node.ts'
import type { Row } from './row.ts'

/**
 * Rows of old segments that one commit removes at most, so that a large segment does not hold up a commit; more where
 * the commit itself brings many, or the store would grow without end.
 */
const dropsPerCommit = 4096

export class TimeWindowStore extends BaseStore implements WindowStore<unknown, unknown> {
  readonly #intervalMs: number
  readonly #duplicates: boolean
  /** Last sequence number by key and start, for those put since the last commit. */
  readonly #sequences = new Map<string, number>()

  constructor(spec: StoreSpec, backend: StoreBackend, partition: number, options: StoreOptions) {
    super(spec, backend, partition, options)
    this.#intervalMs = segmentMs(spec)
    this.#duplicates = spec.retainDuplicates === true
    if (backend.durable) this.#readNewest()
  }

  put(key: unknown, value: unknown, windowStart: number, timestamp = windowStart, keyBytes?: Uint8Array): void {
    this.onOperation?.('put')
    if (windowStart <= this.clock.horizon) return
    const keyText = this.keyOf(key, keyBytes)
    if (value === null || value === undefined) {
      this.#remove(keyText, windowStart)
      return
    }
    this.clock.observe(windowStart)
    const sequence = this.#duplicates ? this.#nextSequence(keyText, windowStart) : 0
    if (sequence === 0) this.putWindow(keyText, windowStart, value, timestamp)
    else this.putValue(windowRow(this.#intervalMs, keyText, windowStart, sequence), value, timestamp)
  }

  fetch(key: unknown, windowStart: number, keyBytes?: Uint8Array): ValueAndTimestamp<unknown> | undefined {
    this.onOperation?.('get')
    if (windowStart <= this.clock.horizon || windowStart < 0) return undefined
    const keyText = this.keyOf(key, keyBytes)
    if (this.#duplicates) {
      for (const [, row] of this.#ofKey(keyText, windowStart, windowStart, false)) return this.#valueOf(row)
      return undefined
    }
    const row = this.overlay.getWindow(keyText, windowStart)
    return row && this.#valueOf(row)
  }

  *fetchRange(
    key: unknown,
    from: number,
    to: number,
    backward = false,
    keyBytes?: Uint8Array,
  ): IterableIterator<[windowStart: number, row: ValueAndTimestamp<unknown>]> {
    this.onOperation?.('get')
    for (const [at, row] of this.#ofKey(this.keyOf(key, keyBytes), from, to, backward)) {
      yield [windowStartOf(at), this.#valueOf(row)]
    }
  }

  *fetchAll(
    from: number,
    to: number,
  ): IterableIterator<[key: unknown, windowStart: number, row: ValueAndTimestamp<unknown>]> {
    this.onOperation?.('get')
    const first = Math.max(clampTime(from), this.clock.horizon + 1)
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

  override seal(epoch: CommitEpoch): SealedChanges | null {
    this.#sequences.clear()
    const retention = this.spec.retentionMs
    // The horizon moves only here: by now every timer up to the watermark has fired, so no window is taken away before
    // it was emitted, however far the watermark jumped. It is counted back from the newest window, as in Kafka
    // Streams, but never from beyond the watermark: one partition's data may run far ahead of another's.
    if (retention !== undefined && this.overlay.isChanged) {
      this.clock.forget(Math.min(this.clock.newest, this.streamTime()) - retention)
    }
    return super.seal(epoch)
  }

  override discard(): void {
    super.discard()
    this.#sequences.clear()
  }

  override restore(changes: readonly ByteChange[], checkpoint: Checkpoint): void {
    super.restore(changes, checkpoint)
    for (const [key] of changes) this.clock.observeCommitted(windowStartOf(keyString(key)))
  }

  protected override expire(): readonly string[] {
    const most = Math.max(dropsPerCommit, 2 * this.overlay.changes)
    if (this.overlay.expire(this.clock.horizon, most)) return []
    // Whole segments only: all their windows start at or before the horizon.
    const upTo = segmentStart(Math.max(0, this.clock.horizon + 1), this.#intervalMs)
    if (upTo === 0) return []
    const dropped: string[] = []
    const end = int64String(upTo)
    for (const [at] of this.overlay.settled(undefined)) {
      if (at >= end) break
      if (dropped.push(at) >= most) break
    }
    return this.forget(dropped)
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
  }

  *#ofKey(key: string, from: number, to: number, backward: boolean): IterableIterator<[at: string, row: Row]> {
    const first = Math.max(clampTime(from), this.clock.horizon + 1)
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

  /** After a restart: the newest segment says within a segment's length when the newest window was. */
  #readNewest(): void {
    for (const [at] of this.overlay.range(undefined, undefined, true)) {
      this.clock.observeCommitted(int64At(at, 0))
      return
    }
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
