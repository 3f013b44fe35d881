/**
 * What is buffered: the head of every partition, which of them is the oldest, and since when the others wait behind it.
 * A head whose task waits for another partition, or that is ahead of those who feed its task through a topic, is withheld,
 * and takes no part in that.
 */
import { type Gate, Gates } from './gates.ts'
import { HeadOrder, noHead } from './head-order.ts'
import { widened } from './idleness.ts'
import { type TaskInput, TaskInputs } from './task-inputs.ts'

/** A head that waits; `byWriters`: for those who write to the awaited partition, and not for records that lie in it. */
export interface HeadWait {
  readonly held: number
  readonly awaited: number
  readonly byWriters: boolean
  readonly since: number
}

export class Heads {
  readonly #order: HeadOrder
  readonly #inputs: TaskInputs
  readonly #gates: Gates
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
    this.#gates = new Gates(capacity)
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

  /** Its head waits for those who write to its sub-topology, and for no record that lies at the broker. */
  waitsForWriters(p: number): boolean {
    return this.isWithheld(p) && !this.#inputs.waits(p)
  }

  /** Its heads go no further than those have come who write to its sub-topology. */
  isGated(p: number): boolean {
    return this.#gates.has(p)
  }

  /** Nothing older than this is left of it, as far as its head and those who write can tell; `Infinity`: nothing is known to come. */
  comesTo(p: number): number {
    return Math.min(this.timestamp(p), this.writersAt(p))
  }

  /** How far those have come who write to its sub-topology; `Infinity` where its heads wait for nobody. */
  writersAt(p: number): number {
    return this.#gates.writersAt(p)
  }

  get isAnyGated(): boolean {
    return this.#gates.any
  }

  /** Whether both wait for the same writers. */
  shareGate(p: number, q: number): boolean {
    return q >= 0 && this.#gates.members(p).includes(q)
  }

  rank(slots: readonly number[]): void {
    this.#order.rank(slots)
  }

  /** Partitions whose heads may have to wait now, or need not any more: to be given to `place`. So are all such answers. */
  join(p: number, input: TaskInput): readonly number[] {
    return this.#inputs.join(p, input) ? this.#inputs.members(p) : none
  }

  /** See `Gates.close`. */
  gate(members: readonly number[], awaited: number, went: (p: number) => number, now: number): readonly number[] {
    this.#gates.close(members, awaited, went, now)
    this.#hold(awaited)
    return members
  }

  /** Those who feed the gate of `p` have come so far; `known` says for each partition what was read of it then. */
  cameTo(p: number, gate: Gate, known: (q: number) => number, now: number): readonly number[] {
    const members = this.#gates.members(p)
    for (const q of members) this.#gates.move(q, gate, known(q), now)
    this.#hold(p)
    return members
  }

  /** The heads behind its gate go up to this event time. */
  letGo(p: number, upToMs: number, now: number): readonly number[] {
    const members = this.#gates.members(p)
    for (const q of members) this.#gates.went(q, upToMs, now)
    this.#hold(p)
    return members
  }

  leave(p: number): readonly number[] {
    const gated = this.#gates.members(p)
    this.#gates.remove(p)
    const left = this.#inputs.leave(p)
    const [first] = gated
    if (first === undefined) return left
    this.#hold(first)
    return [...left, ...gated]
  }

  /** Something is buffered where nothing was. */
  arrived(p: number, timestamp: number, offset: number, now: number): readonly number[] {
    this.#bufferedSince[p] = now
    this.#offset[p] = offset
    this.#order.set(p, timestamp)
    const held = this.#hold(p)
    const awaited = this.#inputs.buffered(p, now)
    this.#withholdWhereItWaits(p)
    return awaited ? [...this.#inputs.members(p), ...held] : held
  }

  /** Another record than before is the partition's next one. */
  replaced(p: number, timestamp: number, offset: number): readonly number[] {
    this.#order.clear(p)
    this.#offset[p] = offset
    this.#order.set(p, timestamp)
    const held = this.#hold(p)
    this.#withholdWhereItWaits(p)
    return held
  }

  #withholdWhereItWaits(p: number): void {
    if (this.#waits(p)) this.#order.withhold(p)
  }

  #waits(p: number): boolean {
    if (this.#inputs.waits(p)) return true
    if (!this.#gates.has(p)) return false
    const timestamp = this.timestamp(p)
    if (this.#gates.isLate(p, timestamp)) return false
    return timestamp > this.#gates.oldestHeld(p) || !this.#gates.passes(p, timestamp, this.offset(p))
  }

  /** Finds anew what the gate of `p` holds: members to look at where that is something else. */
  #hold(p: number): readonly number[] {
    if (!this.#gates.has(p)) return none
    const members = this.#gates.members(p)
    let oldest: number = noHead
    for (const q of members) {
      const timestamp = this.timestamp(q)
      if (timestamp < oldest && !this.#gates.passes(q, timestamp, this.offset(q))) oldest = timestamp
    }
    return this.#gates.setOldestHeld(members, oldest) ? members : none
  }

  waitsBehind(p: number, now: number): void {
    if (p !== this.oldest) this.#behindSince[p] = now
  }

  /** The head is gone; behind it waits the next one, or `noHead`: then it `ranEmpty`. Where there are gates, it `wentThrough`. */
  next(p: number, timestamp: number, offset: number): void {
    this.#order.set(p, timestamp)
    this.#offset[p] = offset
    this.#behindSince[p] = Number.NaN
  }

  /** A head of this event time has gone, and the next one may have to wait at the gate. */
  wentThrough(p: number, went: number, now: number): readonly number[] {
    if (!this.#gates.has(p)) return none
    this.#gates.went(p, went, now)
    const timestamp = this.timestamp(p)
    if (timestamp === noHead) return none
    // What went was not held, so that only the next one may change what is held.
    const held = this.#gates.passes(p, timestamp, this.offset(p)) ? none : this.#hold(p)
    this.#withholdWhereItWaits(p)
    return held
  }

  /** What is buffered is given up. */
  take(p: number): readonly number[] {
    this.#order.clear(p)
    this.#offset[p] = -1
    this.#bufferedSince[p] = Number.NaN
    this.#behindSince[p] = Number.NaN
    return this.#hold(p)
  }

  ranEmpty(p: number, now: number): readonly number[] {
    this.#bufferedSince[p] = Number.NaN
    return this.#inputs.ranEmpty(p, now) ? this.#inputs.members(p) : none
  }

  fetched(p: number, lag: number, now: number): readonly number[] {
    return this.#inputs.fetched(p, lag, now) ? this.#inputs.members(p) : none
  }

  forgetLag(p: number, now: number): readonly number[] {
    return this.#inputs.forgetLag(p, now) ? this.#inputs.members(p) : none
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
    if (this.#waits(p)) this.#order.withhold(p)
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
  longestWait(slots: readonly number[]): HeadWait | undefined {
    if (this.#order.withheld === 0) return undefined
    let longest: HeadWait | undefined
    for (const p of slots) {
      const wait = this.isWithheld(p) ? this.#waitOf(p) : undefined
      if (!wait) continue
      const since = Math.max(wait.since, this.#bufferedSince[p] as number)
      if (!longest || since < longest.since)
        longest = { held: p, awaited: wait.awaited, byWriters: wait.byWriters, since }
    }
    return longest
  }

  #waitOf(p: number): Pick<HeadWait, 'awaited' | 'byWriters' | 'since'> | undefined {
    const wait = this.#inputs.wait(p)
    if (wait) return { ...wait, byWriters: false }
    const awaited = this.#gates.awaited(p)
    return awaited < 0 ? undefined : { awaited, byWriters: true, since: this.#gates.since(p) }
  }

  grow(capacity: number): void {
    const { length } = this.#offset
    this.#gates.grow(capacity)
    this.#offset = widened(this.#offset, capacity).fill(-1, length)
    this.#bufferedSince = widened(this.#bufferedSince, capacity).fill(Number.NaN, length)
    this.#behindSince = widened(this.#behindSince, capacity).fill(Number.NaN, length)
    this.#order.grow(capacity)
    this.#inputs.grow(capacity)
  }
}

const none: readonly number[] = []
