/** Lets event time go on with the wall clock while no records come, for windows that ask for it. */
import type { Operator, TaskContext } from './contract.ts'

export class QuietInput {
  readonly #operator: Operator
  readonly #context: TaskContext
  readonly #idleMs: number
  #lastArrival = 0
  #lastTime = Number.NEGATIVE_INFINITY
  /** Where silent partitions keep the watermark unknown, the records' own time stands in for it. */
  #newest = Number.NEGATIVE_INFINITY
  /** Nothing has come since the start, and the clock has not been looked at. */
  #isNew = false

  constructor(operator: Operator, context: TaskContext, idleMs: number) {
    this.#operator = operator
    this.#context = context
    this.#idleMs = idleMs
  }

  /** A record has come at this event time, with this timestamp. */
  arrived(time: number, timestamp: number): void {
    this.#isNew = false
    this.#lastArrival = this.#context.wallClock()
    if (time > this.#lastTime) this.#lastTime = time
    if (timestamp > this.#newest) this.#newest = timestamp
    this.#context.wakeAtWallClock(this.#operator, this.#lastArrival + this.#idleMs)
  }

  /**
   * Something waits from before the start, a record of at least this timestamp. The quiet is counted from when timers may
   * fire: until then, while stores are restored, nothing could have come.
   */
  begins(timestamp: number): void {
    this.#isNew = true
    this.#newest = timestamp
    this.#context.wakeAtWallClock(this.#operator, this.#context.wallClock())
  }

  /** The event time that the quiet has come to, or undefined while there was none; asks to be called again for `next`. */
  timeAt(nowMs: number, next: () => number): number | undefined {
    if (this.#isNew) {
      this.#isNew = false
      this.#lastArrival = nowMs
    }
    const quiet = nowMs - this.#lastArrival
    if (this.#newest === Number.NEGATIVE_INFINITY) return undefined
    if (quiet < this.#idleMs) {
      this.#context.wakeAtWallClock(this.#operator, this.#lastArrival + this.#idleMs)
      return undefined
    }
    const known = Math.max(this.#lastTime, this.#context.settledTo())
    const time = (known === Number.NEGATIVE_INFINITY ? this.#newest : known) + quiet
    const due = next()
    if (due !== Number.POSITIVE_INFINITY && due > time)
      this.#context.wakeAtWallClock(this.#operator, nowMs + due - time)
    return time
  }
}
