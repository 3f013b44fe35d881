/**
 * What alignment withholds: the head that would go next, and everything younger with it, as long as a member of its group
 * that may still get an older record is too far behind.
 */
import { Alignment } from './alignment.ts'
import type { Heads } from './heads.ts'
import { type IdleClocks, widened } from './idleness.ts'
import { type PartitionWatermarks, never, unknown } from './partition-watermarks.ts'

export interface HoldParts {
  readonly heads: Heads
  readonly marks: PartitionWatermarks
  readonly idle: IdleClocks
}

export class Holds {
  readonly #maxHoldMs: number
  readonly #heads: Heads
  readonly #marks: PartitionWatermarks
  readonly #idle: IdleClocks
  readonly #alignment: Alignment
  /** When a record was dispatched last, without the time for which dispatch was held; NaN before the first. */
  #lastEvent: Float64Array
  #blockedSince = Number.NaN

  /** `maxHoldMs`: a hold that lasted this long no longer waits for its laggards; 0: it waits as long as they are behind. */
  constructor(capacity: number, maxHoldMs: number, { heads, marks, idle }: HoldParts) {
    this.#maxHoldMs = maxHoldMs
    this.#heads = heads
    this.#marks = marks
    this.#idle = idle
    this.#alignment = new Alignment(capacity)
    this.#lastEvent = new Float64Array(capacity).fill(Number.NaN)
  }

  assign(p: number, alignment: { readonly group: string; readonly maxDriftMs: number } | undefined): void {
    this.#lastEvent[p] = Number.NaN
    if (alignment) this.#alignment.join(p, alignment.group, alignment.maxDriftMs)
  }

  /** Whether there are alignment groups, or a hold that is not over: without, nothing is ever stopped. */
  get any(): boolean {
    return this.#alignment.any || !Number.isNaN(this.#blockedSince)
  }

  revoke(p: number, now: number): void {
    this.#alignment.leave(p, now)
  }

  /** Whether a hold may end by time alone. */
  get areBounded(): boolean {
    return this.#maxHoldMs > 0
  }

  groupName(p: number): string | null {
    return this.#alignment.groupName(p)
  }

  lastEvent(p: number): number {
    return this.#lastEvent[p] as number
  }

  arrived(p: number): void {
    this.#alignment.arrived(p)
  }

  dispatched(p: number, now: number): void {
    this.#lastEvent[p] = now
  }

  /** The head is given up, and its hold with it. */
  end(p: number, now: number): void {
    this.#alignment.endHold(p, now)
  }

  /** Whether the head that would go next, `p`, is held; -1: there is none. */
  stops(p: number, slots: readonly number[], now: number): boolean {
    if (p < 0) {
      this.#blockedSince = Number.NaN
      return false
    }
    if (this.#alignment.holding) this.#endHolds(now)
    if (this.#alignment.aligned(p) && this.isHeld(p) && !this.#isOver(p, now)) {
      this.#alignment.hold(p, this.#heads.offset(p), now)
      if (Number.isNaN(this.#blockedSince)) this.#blockedSince = now
      return true
    }
    if (!Number.isNaN(this.#blockedSince)) this.#endBlock(slots, now)
    return false
  }

  isHeld(p: number): boolean {
    return this.#alignment.held(p, this.#marks.candidate(p))
  }

  /** NaN where the head of `p` is not held. */
  heldSince(p: number): number {
    return this.#alignment.heldSince(p, this.#heads.offset(p))
  }

  /** For how long the head of `p` has held up dispatch since it was assigned, milliseconds. */
  heldMs(p: number, now: number): number {
    return this.#alignment.heldMs(p, now)
  }

  laggards(p: number): number[] {
    return this.#alignment.laggards(p, this.#marks.candidate(p))
  }

  /** When the hold of `p` ends by itself. */
  deadline(p: number): number {
    return this.heldSince(p) + this.#maxHoldMs
  }

  /** How far behind the others of its group wait for `p`. */
  refresh(p: number): void {
    if (!this.#alignment.aligned(p)) return
    if (this.#heads.isWithheld(p)) {
      // It cannot go before those that are ahead of it, and its head tells how far it will be. Those who write may be
      // among what would be held for it.
      this.#alignment.setLaggard(p, this.#heads.waitsForWriters(p) ? never : this.#marks.candidate(p))
      return
    }
    const watermark = this.#marks.watermark(p)
    const waitsForNothing =
      this.#heads.has(p) || this.#idle.isIdle(p) || (watermark === unknown && this.#idle.seenEmpty(p))
    this.#alignment.setLaggard(p, waitsForNothing ? never : watermark)
  }

  /** The least watermark in the group of `p`. */
  groupMin(p: number): number | undefined {
    return this.#alignment.groupMin(p, (q) => {
      const counted = this.#idle.isIdle(q) ? never : this.#marks.counted(q)
      return counted === unknown ? never : counted
    })
  }

  grow(capacity: number): void {
    const { length } = this.#lastEvent
    this.#lastEvent = widened(this.#lastEvent, capacity).fill(Number.NaN, length)
    this.#alignment.grow(capacity)
  }

  #endHolds(now: number): void {
    this.#alignment.endHolds((p, offset) => this.#heads.offset(p) !== offset || !this.isHeld(p), now)
  }

  #isOver(p: number, now: number): boolean {
    if (!this.areBounded || !(now - this.heldSince(p) >= this.#maxHoldMs)) return false
    this.#alignment.excuse(this.laggards(p))
    this.#alignment.endHold(p, now)
    return true
  }

  /** A hold has ended: what was buffered meanwhile could not be dispatched, and the wait is no sign of idleness. */
  #endBlock(slots: readonly number[], now: number): void {
    const from = this.#blockedSince
    this.#blockedSince = Number.NaN
    for (const p of slots) {
      const bufferedSince = this.#heads.bufferedSince(p)
      if (!Number.isNaN(bufferedSince)) this.#lastEvent[p] = this.lastEvent(p) + now - Math.max(from, bufferedSince)
    }
  }
}
