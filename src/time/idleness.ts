/**
 * The idle clock of every partition. A partition is idle when it was seen to be empty for its whole timeout: the clock
 * runs only while nothing is buffered and the broker, asked again and again, has nothing more to give. Time in which
 * nobody could have seen a record (a pause, a failing fetch, a full buffer, a broker that does not answer) is no
 * evidence and does not count. That it was empty to the end of the timeout has to be known: where the last answer is of
 * an earlier moment, the broker is asked once more.
 */
import { assert } from '../base/assert.ts'

const fetched = 1
const caughtUp = 2
const failed = 4
const buffered = 8
const idle = 16
const none: readonly number[] = []

export interface IdlenessOptions {
  /** How long an answer that nothing is there holds good, milliseconds: a little more than the wait of one fetch. */
  readonly evidenceTtlMs: number
  /** Whether the clock goes on while fetching a partition fails. */
  readonly onFetchError: 'suspend' | 'count'
}

export interface MoreEvidence {
  /** When the broker was asked; left out: now. */
  readonly askedAt?: number | undefined
  /** Open transactions hold records back. */
  readonly isWithheld?: boolean
}

export class IdleClocks {
  readonly #options: IdlenessOptions
  #timeout: Float64Array
  /** Idle time of earlier stretches. */
  #accrued: Float64Array
  /** Beginning of the stretch that runs, NaN while the clock stands. */
  #since: Float64Array
  /** Last time of which it is known that the broker had nothing. */
  #evidence: Float64Array
  /** For how long the partition has been idle, before the time that runs. */
  #idleMs: Float64Array
  /** Since when it is idle; NaN while it is not. */
  #idleSince: Float64Array
  #flags: Uint8Array
  /** Of these the broker was asked whether they are empty still. */
  readonly #asked = new Set<number>()
  #stopped = false
  /** When the next partition turns idle, and when the next one is to be asked for. */
  #deadline = Number.POSITIVE_INFINITY
  #question = Number.POSITIVE_INFINITY
  #deadlineStale = false

  constructor(capacity: number, options: IdlenessOptions) {
    this.#options = options
    this.#timeout = new Float64Array(capacity)
    this.#accrued = new Float64Array(capacity)
    this.#since = new Float64Array(capacity).fill(Number.NaN)
    this.#evidence = new Float64Array(capacity).fill(Number.NEGATIVE_INFINITY)
    this.#idleMs = new Float64Array(capacity)
    this.#idleSince = new Float64Array(capacity).fill(Number.NaN)
    this.#flags = new Uint8Array(capacity)
  }

  timeoutMs(p: number): number {
    return this.#timeout[p] as number
  }

  isIdle(p: number): boolean {
    return ((this.#flags[p] as number) & idle) !== 0
  }

  /** For how long the partition has been idle since it was assigned, milliseconds. */
  idleMs(p: number, now: number): number {
    const since = this.#idleSince[p] as number
    return (this.#idleMs[p] as number) + (Number.isNaN(since) ? 0 : now - since)
  }

  /** The broker was asked and had nothing beyond what was read. */
  seenEmpty(p: number): boolean {
    return ((this.#flags[p] as number) & (fetched | caughtUp)) === (fetched | caughtUp)
  }

  /** Up to when all that came was read and dispatched; undefined while something is buffered, before which it came to more. */
  knownAt(p: number): number | undefined {
    return ((this.#flags[p] as number) & buffered) === 0 ? this.#evidence[p] : undefined
  }

  assign(p: number, timeoutMs: number): void {
    assert(timeoutMs >= 0, `a partition is idle after ${timeoutMs} ms`)
    this.#timeout[p] = timeoutMs
    this.#idleSince[p] = Number.NaN
    this.#idleMs[p] = 0
    this.#forget(p)
  }

  /** Forgets all evidence, as after a seek. */
  reset(p: number, now: number): void {
    this.#awake(p, now)
    this.#forget(p)
  }

  /** Something is buffered: the partition is awake, its clock stands. True if it was idle. */
  arrived(p: number, now: number): boolean {
    const flags = this.#flags[p] as number
    this.#flags[p] = (flags | buffered) & ~idle
    this.#awake(p, now)
    this.#refresh(p, now)
    return (flags & idle) !== 0
  }

  /** The last record that was buffered was dispatched: the clock begins anew. */
  ranEmpty(p: number, now: number): void {
    this.#accrued[p] = 0
    const flags = (this.#flags[p] as number) & ~buffered
    this.#flags[p] = flags
    this.#since[p] = this.#runs(p) ? now : Number.NaN
    this.#deadlineStale = true
  }

  /**
   * What the last fetch said. `lag`: records of the log beyond the position reached. It tells of the moment at which it was
   * asked: an answer may have lain there for as long as this process had no time for it. True where a partition that was
   * idle has records again: it is awake before they are fetched.
   */
  evidence(p: number, lag: number, fetchFailed: boolean, now: number, askedAt = now): boolean {
    const flags = this.#flags[p] as number
    const counts = fetchFailed ? this.#options.onFetchError === 'count' : lag <= 0
    const wakes = !fetchFailed && !counts && (flags & idle) !== 0
    this.#asked.delete(p)
    if (counts) {
      this.#closeGap(p, askedAt, now)
      this.#evidence[p] = Math.max(this.#evidence[p] as number, askedAt)
    }
    if (wakes) {
      this.#awake(p, now)
      // Where there are no records in what lies there, but marks of transactions, it is idle again as soon as that is known.
      this.#accrued[p] = this.#timeout[p] as number
    }
    if (fetchFailed && !counts) this.#flags[p] = flags | failed
    else this.#flags[p] = (flags & ~(failed | caughtUp | (wakes ? idle : 0))) | fetched | (counts ? caughtUp : 0)
    // Since the last answer nobody may have been able to write either.
    this.#refresh(p, now, fetchFailed ? (this.#evidence[p] as number) : now)
    return wakes
  }

  /** All clocks stand, as while the application is paused. */
  stop(slots: Iterable<number>, now: number): void {
    this.#stopped = true
    for (const p of slots) this.#refresh(p, now)
  }

  go(slots: Iterable<number>, now: number): void {
    this.#stopped = false
    for (const p of slots) this.#refresh(p, now)
  }

  /** Whether the partition's timeout is over, and it was empty to its end. */
  isDue(p: number, now: number): boolean {
    const deadline = this.#deadlineOf(p)
    return deadline <= now && this.#isProven(p, deadline)
  }

  /** Those whose timeout is over, but for the proof that they were empty to its end. Each once, until an answer comes. */
  unproven(slots: Iterable<number>, now: number): readonly number[] {
    if (this.nextQuestion(slots) > now) return none
    const found: number[] = []
    for (const p of slots) {
      const deadline = this.#deadlineOf(p)
      if (deadline <= now && !this.#asked.has(p) && !this.#isProven(p, deadline)) found.push(p)
    }
    for (const p of found) this.#asked.add(p)
    this.#deadlineStale = true
    return found
  }

  /** The partition, which is due, is idle until something is buffered. */
  expire(p: number): void {
    this.#idleSince[p] = this.#deadlineOf(p)
    this.#flags[p] = (this.#flags[p] as number) | idle
    this.#since[p] = Number.NaN
    this.#deadlineStale = true
  }

  /** When the next partition turns idle, as far as that is proven; `Infinity` for never. */
  nextDeadline(slots: Iterable<number>): number {
    this.#findDeadlines(slots)
    return this.#deadline
  }

  /** When `unproven` has something to tell, if nothing happens before; `Infinity` for never. */
  nextQuestion(slots: Iterable<number>): number {
    this.#findDeadlines(slots)
    return this.#question
  }

  grow(capacity: number): void {
    const { length } = this.#flags
    this.#timeout = widened(this.#timeout, capacity)
    this.#accrued = widened(this.#accrued, capacity)
    this.#since = widened(this.#since, capacity).fill(Number.NaN, length)
    this.#evidence = widened(this.#evidence, capacity).fill(Number.NEGATIVE_INFINITY, length)
    this.#idleMs = widened(this.#idleMs, capacity)
    this.#idleSince = widened(this.#idleSince, capacity).fill(Number.NaN, length)
    const flags = new Uint8Array(capacity)
    flags.set(this.#flags)
    this.#flags = flags
  }

  #findDeadlines(slots: Iterable<number>): void {
    if (!this.#deadlineStale) return
    this.#deadlineStale = false
    this.#deadline = Number.POSITIVE_INFINITY
    this.#question = Number.POSITIVE_INFINITY
    for (const p of slots) {
      const deadline = this.#deadlineOf(p)
      if (this.#isProven(p, deadline)) this.#deadline = Math.min(this.#deadline, deadline)
      else if (!this.#asked.has(p)) this.#question = Math.min(this.#question, deadline)
    }
  }

  #forget(p: number): void {
    this.#asked.delete(p)
    this.#flags[p] = 0
    this.#accrued[p] = 0
    this.#since[p] = Number.NaN
    this.#evidence[p] = Number.NEGATIVE_INFINITY
    this.#deadlineStale = true
  }

  #awake(p: number, now: number): void {
    this.#idleMs[p] = this.idleMs(p, now)
    this.#idleSince[p] = Number.NaN
  }

  #runs(p: number): boolean {
    if (this.#stopped || (this.#timeout[p] as number) <= 0) return false
    return this.#flags[p] === (fetched | caughtUp)
  }

  /** Of a stretch that ends, the time counts that is before `until`. */
  #refresh(p: number, now: number, until = now): void {
    const since = this.#since[p] as number
    const running = !Number.isNaN(since)
    if (this.#runs(p) === running) return
    if (running) {
      this.#accrued[p] = (this.#accrued[p] as number) + Math.max(0, Math.min(until, this.#goodUntil(p)) - since)
      this.#since[p] = Number.NaN
    } else {
      this.#since[p] = now
    }
    this.#deadlineStale = true
  }

  /**
   * Leaves out the time for which there is no evidence, where there was none for too long. Whoever waits so long for an answer may not
   * have been the only one: what was to be written meanwhile is still to come.
   */
  #closeGap(p: number, askedAt: number, now: number): void {
    const since = this.#since[p] as number
    this.#deadlineStale = true
    const isSlow = now - askedAt > this.#options.evidenceTtlMs
    if (Number.isNaN(since) || (askedAt <= this.#goodUntil(p) && !isSlow)) return
    this.#accrued[p] = (this.#accrued[p] as number) + Math.max(0, (this.#evidence[p] as number) - since)
    this.#since[p] = Math.max(since, isSlow ? now : askedAt)
  }

  #goodUntil(p: number): number {
    return (this.#evidence[p] as number) + this.#options.evidenceTtlMs
  }

  #isProven(p: number, deadline: number): boolean {
    return (this.#evidence[p] as number) >= deadline
  }

  #deadlineOf(p: number): number {
    const since = this.#since[p] as number
    if (Number.isNaN(since)) return Number.POSITIVE_INFINITY
    const deadline = since + (this.#timeout[p] as number) - (this.#accrued[p] as number)
    return deadline <= this.#goodUntil(p) ? deadline : Number.POSITIVE_INFINITY
  }
}

/** A longer copy; what is new is zero. */
export function widened(values: Float64Array, capacity: number): Float64Array<ArrayBuffer> {
  const wider = new Float64Array(capacity)
  wider.set(values)
  return wider
}
