/**
 * How far the heads of a sub-topology may go that is fed through topics: no further than those have come who write them, for
 * what they have not written yet may be older. All its partitions share a gate, so that event time comes with them: a timer
 * fires before the records that find its time reached. Other partitions have no gate.
 */
import { widened } from './idleness.ts'

export interface Gate {
  /** Heads up to this event time go: nothing older will be written. */
  readonly upToMs: number
  /** Heads up to this event time go that were known when those who write had nothing older left to do. */
  readonly knownUpToMs: number
}

export const closedGate: Gate = { upToMs: Number.NEGATIVE_INFINITY, knownUpToMs: Number.NEGATIVE_INFINITY }

const open = Number.POSITIVE_INFINITY
const none: readonly number[] = []

export class Gates {
  #upTo: Float64Array
  #knownUpTo: Float64Array
  /** What was known: everything below this offset of the partition. */
  #known: Float64Array
  /** Event time of the youngest head of the partition that went. */
  #went: Float64Array
  /** Since when the gate stands where it is; NaN where there is none. */
  #since: Float64Array
  /** The partition of the topic whose writers are waited for. */
  #awaited: Int32Array
  /** Event time of the oldest head of the task that its gate holds: none goes that is younger. */
  #oldestHeld: Float64Array
  /** Those that share a gate with this one, itself included. */
  readonly #members: Array<number[] | undefined> = []
  /** How many partitions have a gate. */
  #count = 0

  constructor(capacity: number) {
    this.#upTo = new Float64Array(capacity).fill(open)
    this.#knownUpTo = new Float64Array(capacity).fill(open)
    this.#known = new Float64Array(capacity)
    this.#went = new Float64Array(capacity).fill(Number.NEGATIVE_INFINITY)
    this.#since = new Float64Array(capacity).fill(Number.NaN)
    this.#awaited = new Int32Array(capacity).fill(-1)
    this.#oldestHeld = new Float64Array(capacity).fill(open)
  }

  /** Whether there are gates at all. */
  get any(): boolean {
    return this.#count > 0
  }

  /**
   * From now on these partitions have a gate together, a closed one, until those are heard of who write to `awaited`. What
   * is no younger than what `went` of its partition before has lost its place, and goes: it may be all that the buffer
   * shows before it is read up to where the gate opens.
   */
  close(members: readonly number[], awaited: number, went: (p: number) => number, now: number): void {
    const own = [...members]
    for (const p of members) {
      if (!this.has(p)) this.#count++
      this.#members[p] = own
      this.#upTo[p] = went(p)
      this.#knownUpTo[p] = Number.NEGATIVE_INFINITY
      this.#known[p] = 0
      this.#went[p] = went(p)
      this.#since[p] = now
      this.#awaited[p] = awaited
    }
  }

  /** Those that share a gate with this one, itself included; none where it has none. */
  members(p: number): readonly number[] {
    return this.#members[p] ?? none
  }

  /** The partition has no gate any more. */
  remove(p: number): void {
    if (this.has(p)) this.#count--
    const members = this.#members[p] ?? []
    members.splice(members.indexOf(p), 1)
    // The others wait for those who write to what is left of the topics.
    for (const q of members) if (this.#awaited[q] === p) this.#awaited[q] = members[0] as number
    this.#members[p] = undefined
    this.#upTo[p] = open
    this.#oldestHeld[p] = open
    this.#since[p] = Number.NaN
    this.#awaited[p] = -1
  }

  move(p: number, { upToMs, knownUpToMs }: Gate, known: number, now: number): void {
    if (!this.has(p)) return
    this.#raise(p, upToMs, now)
    // More is known with each thing that is written. It does not come further by that.
    if (this.#knownUpTo[p] !== knownUpToMs) this.#since[p] = now
    this.#knownUpTo[p] = knownUpToMs
    this.#known[p] = known
  }

  /** How far those have come who write, save those that have nothing left to do; `Infinity` where there is no gate. */
  writersAt(p: number): number {
    return Math.max(this.#upTo[p] as number, this.#knownUpTo[p] as number)
  }

  /** A head of this time went: what is as old does not wait any longer. */
  went(p: number, timestamp: number, now: number): void {
    if (!this.has(p)) return
    this.#raise(p, timestamp, now)
    if (timestamp > (this.#went[p] as number)) this.#went[p] = timestamp
  }

  /** A head that comes behind a younger one of its partition has lost its place: others need not go before it. */
  isLate(p: number, timestamp: number): boolean {
    return timestamp <= (this.#went[p] as number)
  }

  /** Whether this head goes as far as its own gate says. */
  passes(p: number, timestamp: number, offset: number): boolean {
    if (timestamp <= (this.#upTo[p] as number)) return true
    return timestamp <= (this.#knownUpTo[p] as number) && offset < (this.#known[p] as number)
  }

  /** Event time of the oldest head of the task that its gate holds; `Infinity`: none is held. */
  oldestHeld(p: number): number {
    return this.#oldestHeld[p] as number
  }

  /** True if it was another one. */
  setOldestHeld(members: readonly number[], timestamp: number): boolean {
    let changed = false
    for (const p of members) {
      if (this.#oldestHeld[p] !== timestamp) changed = true
      this.#oldestHeld[p] = timestamp
    }
    return changed
  }

  since(p: number): number {
    return this.#since[p] as number
  }

  awaited(p: number): number {
    return this.#awaited[p] as number
  }

  grow(capacity: number): void {
    const { length } = this.#upTo
    this.#upTo = widened(this.#upTo, capacity).fill(open, length)
    this.#knownUpTo = widened(this.#knownUpTo, capacity).fill(open, length)
    this.#known = widened(this.#known, capacity)
    this.#went = widened(this.#went, capacity).fill(Number.NEGATIVE_INFINITY, length)
    this.#since = widened(this.#since, capacity).fill(Number.NaN, length)
    this.#oldestHeld = widened(this.#oldestHeld, capacity).fill(open, length)
    const awaited = new Int32Array(capacity).fill(-1)
    awaited.set(this.#awaited)
    this.#awaited = awaited
  }

  /** Whether the partition has a gate. */
  has(p: number): boolean {
    return !Number.isNaN(this.#since[p] as number)
  }

  #raise(p: number, upToMs: number, now: number): void {
    if (upToMs <= (this.#upTo[p] as number)) return
    this.#upTo[p] = upToMs
    this.#since[p] = now
  }
}
