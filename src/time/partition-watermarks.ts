/**
 * The watermark of every partition, what its head will make of it, and the least of those that count: an idle partition
 * does not, and one whose head waits behind an older one counts with what that head will bring (its *preview*).
 */
import { assert } from '../base/assert.ts'
import type { Heads } from './heads.ts'
import { type IdleClocks, widened } from './idleness.ts'
import { noHead } from './head-order.ts'
import { MinTree } from './min-tree.ts'

export interface PartitionTiming {
  /** `Infinity`: its records tell nothing of its watermark, which is announced by who writes them (`announce`). */
  readonly maxOutOfOrdernessMs: number
  /** 0: never idle. */
  readonly idlenessMs: number
  readonly alignment: { readonly group: string; readonly maxDriftMs: number } | undefined
  /** A head that waits may be replaced by an older one, and nobody announces how far those have come who write. */
  readonly isUntold?: boolean
}

export const unknown = Number.NEGATIVE_INFINITY
export const never = Number.POSITIVE_INFINITY

export class PartitionWatermarks {
  readonly #heads: Heads
  readonly #idle: IdleClocks
  #outOfOrderness: Float64Array
  #watermark: Float64Array
  /** What its records show beyond this event time does not count: those who write have told no more. */
  #ceiling: Float64Array
  /** See `PartitionTiming.isUntold`. */
  #isUntold: Uint8Array
  /**
   * Watermark that counts, preview included; `-Infinity` unknown, `Infinity` idle or not assigned. The partition whose head
   * goes next stands at `Infinity` too: its watermark changes with every record, and `#least` looks at it by itself.
   */
  readonly #counted: MinTree
  #futureLimit = never
  /** The application's watermark. */
  global = unknown
  /** Records whose event time lay beyond the limit. */
  clamped = 0
  /** From here on a record is ahead of the clock; the least of this and the limit, so that records are compared once. */
  #aheadLimit = never
  #watched = never
  /** Of each partition the record that lies farthest ahead of the clock. */
  readonly #ahead = new Map<number, { readonly offset: number; readonly timestampMs: number; readonly at: number }>()

  constructor(capacity: number, heads: Heads, idle: IdleClocks) {
    this.#heads = heads
    this.#idle = idle
    this.#outOfOrderness = new Float64Array(capacity)
    this.#watermark = new Float64Array(capacity).fill(unknown)
    this.#ceiling = new Float64Array(capacity).fill(never)
    this.#isUntold = new Uint8Array(capacity)
    this.#counted = new MinTree(capacity)
  }

  assign(p: number, { maxOutOfOrdernessMs, isUntold = false }: PartitionTiming): void {
    assert(maxOutOfOrdernessMs >= 0, `records come ${maxOutOfOrdernessMs} ms out of order`)
    this.#outOfOrderness[p] = maxOutOfOrdernessMs
    this.#watermark[p] = unknown
    this.#ceiling[p] = never
    this.#isUntold[p] = isUntold ? 1 : 0
  }

  /** Of this partition no record shows more than this event time. */
  setCeiling(p: number, epochMs: number): void {
    this.#ceiling[p] = epochMs
  }

  /** Whether those who write to the partition tell how far it has come. */
  hasCeiling(p: number): boolean {
    return this.#ceiling[p] !== never
  }

  revoke(p: number): void {
    this.#ahead.delete(p)
    this.#counted.set(p, never)
  }

  watermark(p: number): number {
    return this.#watermark[p] as number
  }

  /** Highest event time dispatched from a partition, -Infinity before the first. */
  maxTs(p: number): number {
    return (this.#watermark[p] as number) + this.#margin(p)
  }

  setMaxTs(p: number, maxTs: number): void {
    this.#watermark[p] = maxTs - this.#margin(p)
  }

  /** True if it is a higher one. */
  raise(p: number, watermark: number): boolean {
    if (watermark <= (this.#watermark[p] as number)) return false
    this.#watermark[p] = watermark
    return true
  }

  /** Nothing older than this event time is left of a partition of which those who write tell how far it has come. */
  comeTo(p: number, timestamp: number): void {
    if (this.hasCeiling(p)) this.raise(p, this.#with(p, timestamp))
  }

  /** The record at this offset, of this event time, was dispatched. */
  dispatched(p: number, timestamp: number, offset: number, now: number): void {
    if (timestamp > this.#watched) this.#beyond(p, timestamp, offset, now)
    if (this.raise(p, this.#with(p, timestamp)) && p !== this.#heads.oldest) this.refresh(p)
  }

  #beyond(p: number, timestamp: number, offset: number, now: number): void {
    if (timestamp > this.#futureLimit) this.clamped++
    const known = this.#ahead.get(p)
    if (timestamp <= this.#aheadLimit || (known && known.timestampMs >= timestamp)) return
    this.#ahead.set(p, { offset, timestampMs: timestamp, at: known?.at ?? now })
  }

  setFutureLimit(epochMs: number): void {
    this.#futureLimit = epochMs
    this.#watched = Math.min(epochMs, this.#aheadLimit)
  }

  /** Event times beyond this instant are ahead of the clock; what it has reached is not so any more. */
  setAheadLimit(epochMs: number): void {
    this.#aheadLimit = epochMs
    this.#watched = Math.min(this.#futureLimit, epochMs)
    for (const [p, { timestampMs }] of this.#ahead) if (timestampMs <= epochMs) this.#ahead.delete(p)
  }

  /** The record that took this partition farthest ahead of the clock, and when (monotonic) the first one did. */
  ahead(p: number): { readonly offset: number; readonly timestampMs: number; readonly at: number } | undefined {
    return this.#ahead.get(p)
  }

  /** The watermark that the partition will have when its head is dispatched. */
  candidate(p: number): number {
    return this.#with(p, this.#heads.timestamp(p))
  }

  /** The watermark that counts in the minimum. */
  counted(p: number): number {
    const timestamp = this.#heads.timestamp(p)
    const showsNothing = p === this.#heads.oldest || timestamp === noHead || this.#mayBePreceded(p)
    return showsNothing ? (this.#watermark[p] as number) : this.#with(p, timestamp)
  }

  /** Its head waits for those who write, who may still write older ones. */
  #mayBePreceded(p: number): boolean {
    return this.#isUntold[p] === 1 && this.#heads.isWithheld(p)
  }

  refresh(p: number): void {
    const isApart = p === this.#heads.oldest || this.#idle.isIdle(p)
    this.#counted.set(p, isApart ? never : this.counted(p))
  }

  advance(): void {
    const { least } = this
    // Infinity: every partition is idle. What was reached stays.
    if (least > this.global && least !== never) this.global = least
  }

  get undecided(): boolean {
    return this.global === unknown || this.least === unknown
  }

  grow(capacity: number): void {
    const { length } = this.#watermark
    this.#outOfOrderness = widened(this.#outOfOrderness, capacity)
    this.#watermark = widened(this.#watermark, capacity).fill(unknown, length)
    this.#ceiling = widened(this.#ceiling, capacity).fill(never, length)
    const isUntold = new Uint8Array(capacity)
    isUntold.set(this.#isUntold)
    this.#isUntold = isUntold
    this.#counted.grow(capacity)
  }

  /** Of the partitions that count at this moment; `Infinity`: all are idle. A partition that has a head is not idle. */
  get least(): number {
    const others = this.#counted.min
    const { oldest } = this.#heads
    if (oldest < 0) return others
    return Math.min(this.#watermark[oldest] as number, others)
  }

  /** The watermark of a partition once a record of this event time is dispatched. */
  #with(p: number, timestamp: number): number {
    const shown = Math.min(timestamp, this.#futureLimit, this.#ceiling[p] as number)
    const brought = shown - (this.#outOfOrderness[p] as number)
    return Math.max(brought, this.#watermark[p] as number)
  }

  /** Of a partition whose watermark is announced the records tell nothing. */
  #margin(p: number): number {
    const outOfOrderness = this.#outOfOrderness[p] as number
    return outOfOrderness === never ? 0 : outOfOrderness
  }
}
