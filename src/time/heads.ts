/**
 * What is buffered: the head of every partition, which of them is the oldest, and since when the others wait behind it.
 * A head whose task waits for another partition is withheld, and takes no part in that.
 */
import { HeadOrder, noHead } from './head-order.ts'
import { widened } from './idleness.ts'
import { type TaskInput, TaskInputs } from './task-inputs.ts'

export class Heads {
  readonly #order: HeadOrder
  readonly #inputs: TaskInputs
  #offset: Float64Array
  /** Since when something has been buffered without interruption; NaN while nothing is. */
  #bufferedSince: Float64Array
  /** Since when the head waits behind an older one of another partition; NaN while it does not. */
  #behindSince: Float64Array
  /** The slot whose head goes next, -1 for none. */
  oldest = -1

  constructor(capacity: number, maxTaskIdleMs: number) {
    this.#order = new HeadOrder(capacity)
    this.#inputs = new TaskInputs(capacity, maxTaskIdleMs)
    this.#offset = new Float64Array(capacity).fill(-1)
    this.#bufferedSince = new Float64Array(capacity).fill(Number.NaN)
    this.#behindSince = new Float64Array(capacity).fill(Number.NaN)
  }

  timestamp(p: number): number {
    return this.#order.timestamp(p)
  }

  has(p: number): boolean {
    return this.#order.timestamp(p) !== noHead
  }

  offset(p: number): number {
    return this.#offset[p] as number
  }

  bufferedSince(p: number): number {
    return this.#bufferedSince[p] as number
  }

  behindSince(p: number): number {
    return this.#behindSince[p] as number
  }

  isWithheld(p: number): boolean {
    return this.#order.isWithheld(p)
  }

  rank(slots: readonly number[]): void {
    this.#order.rank(slots)
  }

  /** Partitions whose heads may have to wait now, or need not any more: to be given to `place`. So are all such answers. */
  join(p: number, input: TaskInput): readonly number[] {
    return this.#inputs.join(p, input) ? this.#inputs.members(p) : none
  }

  leave(p: number): readonly number[] {
    return this.#inputs.leave(p)
  }

  /** Something is buffered where nothing was. */
  arrived(p: number, timestamp: number, offset: number, now: number): readonly number[] {
    this.#bufferedSince[p] = now
    this.#offset[p] = offset
    this.#order.set(p, timestamp)
    if (this.#inputs.buffered(p, now)) return this.#inputs.members(p)
    if (this.#inputs.waits(p)) this.#order.withhold(p)
    return none
  }

  waitsBehind(p: number, now: number): void {
    if (p !== this.oldest) this.#behindSince[p] = now
  }

  /** The head is gone; behind it waits the next one, or `noHead`: then it `ranEmpty`. */
  next(p: number, timestamp: number, offset: number): void {
    this.#order.set(p, timestamp)
    this.#offset[p] = offset
    this.#behindSince[p] = Number.NaN
  }

  /** What is buffered is given up. */
  take(p: number): void {
    this.#order.clear(p)
    this.#offset[p] = -1
    this.#bufferedSince[p] = Number.NaN
    this.#behindSince[p] = Number.NaN
  }

  ranEmpty(p: number, now: number): readonly number[] {
    this.#bufferedSince[p] = Number.NaN
    return this.#inputs.ranEmpty(p, now) ? this.#inputs.members(p) : none
  }

  fetched(p: number, lag: number, now: number): readonly number[] {
    return this.#inputs.fetched(p, lag, now) ? this.#inputs.members(p) : none
  }

  /** Those of one task that no longer waits, for time alone; undefined: none. To be asked again until then. */
  expired(slots: readonly number[], now: number): readonly number[] | undefined {
    const p = this.#inputs.expired(slots, now)
    return p < 0 ? undefined : this.#inputs.members(p)
  }

  nextDeadline(slots: readonly number[]): number {
    return this.#inputs.nextDeadline(slots)
  }

  /** A head whose task waits for more is passed over. */
  place(p: number): void {
    if (this.#inputs.waits(p)) this.#order.withhold(p)
    else this.#order.release(p)
  }

  /** Finds the oldest head anew; true if it is another one. */
  findOldest(now: number): boolean {
    const first = this.#order.first()
    const before = this.oldest
    if (first === before) return false
    this.oldest = first
    if (before >= 0 && this.has(before)) this.#behindSince[before] = now
    if (first >= 0) this.#behindSince[first] = Number.NaN
    return true
  }

  /** Of the heads that wait for a partition of their task, the one that has waited longest. */
  longestWait(slots: readonly number[]): { held: number; awaited: number; since: number } | undefined {
    if (this.#order.withheld === 0) return undefined
    let longest: { held: number; awaited: number; since: number } | undefined
    for (const p of slots) {
      const wait = this.isWithheld(p) ? this.#inputs.wait(p) : undefined
      if (!wait) continue
      const since = Math.max(wait.since, this.#bufferedSince[p] as number)
      if (!longest || since < longest.since) longest = { held: p, awaited: wait.awaited, since }
    }
    return longest
  }

  grow(capacity: number): void {
    const { length } = this.#offset
    this.#offset = widened(this.#offset, capacity).fill(-1, length)
    this.#bufferedSince = widened(this.#bufferedSince, capacity).fill(Number.NaN, length)
    this.#behindSince = widened(this.#behindSince, capacity).fill(Number.NaN, length)
    this.#order.grow(capacity)
    this.#inputs.grow(capacity)
  }
}

const none: readonly number[] = []
