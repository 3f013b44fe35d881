/**
 * Lets event time go on with the wall clock while no records come, for windows that ask for it. What waits in its topic, or
 * before a slow function, has come, and time in which nobody could have seen a record is no quiet: both are the engine's to
 * know (`InputKnowledge`).
 */
import type { Operator, TaskContext } from '../contract.ts'

/** Until what has come by a moment is known, it is asked for again no sooner than this, and no later. */
const soonestMs = 100
const latestMs = 1000
/** So often it is looked whether something is still held back above. */
const heldLookMs = 5000

export class QuietInput {
  readonly #operator: Operator
  readonly #context: TaskContext
  readonly #idleMs: number
  /** What its operator waits for windows above: in quiet it is known what these hold back, and nothing is waited for beyond. */
  readonly #waitMs: number
  #lastArrival = 0
  /** For how long nobody could have seen a record, up to then. */
  #blindMs = 0
  /** How far event time had come then. */
  #lastTime = Number.NEGATIVE_INFINITY
  /** Where silent partitions keep the watermark unknown, the records' own time stands in for it. */
  #newest = Number.NEGATIVE_INFINITY
  /** Nothing has come since the start, and the clock has not been looked at. */
  #isNew = false
  /** At the last look event time was kept back by what operators above hold. */
  #isHeld = false

  constructor(operator: Operator, context: TaskContext, idleMs: number, waitMs = 0) {
    this.#operator = operator
    this.#context = context
    this.#idleMs = idleMs
    this.#waitMs = waitMs
  }

  /** A record has come at this event time, with this timestamp. */
  arrived(time: number, timestamp: number): void {
    this.#isNew = false
    this.#cameAt(this.#context.wallClock(), time)
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

  /** The event time that the quiet has come to; undefined while there was none, or too little: then the clock is looked at again. */
  timeAt(nowMs: number): number | undefined {
    const { input } = this.#context
    if (this.#newest === Number.NEGATIVE_INFINITY) return undefined
    // Also one that went no further than to an operator above.
    if (input.cameAt() > this.#lastArrival) this.#cameAt(input.cameAt(), this.#lastTime)
    else if (this.#isNew) this.#cameAt(nowMs, this.#lastTime)
    this.#isNew = false
    const knownTo = input.knownTo()
    const quiet = knownTo - this.#lastArrival - Math.max(0, input.blindMs(knownTo) - this.#blindMs)
    this.#isHeld = false
    if (quiet < this.#idleMs) {
      this.#lookAgain(nowMs, this.#idleMs - quiet)
      return undefined
    }
    const isUnknown = this.#lastTime === Number.NEGATIVE_INFINITY
    const known = isUnknown ? this.#newest - input.disorderMs : this.#lastTime
    const time = known + quiet - input.behindMs
    const heldFrom = input.heldFrom(this.#operator)
    this.#isHeld = heldFrom < time
    return Math.max(this.#context.settledTo(), Math.min(time, heldFrom) + this.#waitMs)
  }

  /** Something is left that is due at this event time, of which `time` is known. */
  waitsFor(due: number, time: number, nowMs: number): void {
    if (due !== Number.POSITIVE_INFINITY) this.#lookAgain(nowMs, due - time)
  }

  #cameAt(nowMs: number, time: number): void {
    this.#lastArrival = nowMs
    this.#blindMs = this.#context.input.blindMs(nowMs)
    this.#lastTime = Math.max(this.#lastTime, time, this.#context.settledTo())
  }

  #lookAgain(nowMs: number, leftMs: number): void {
    // Where all is known at any moment it is known when the time has come.
    const isBehind = this.#context.input.knownTo() < nowMs
    // What is let go comes as a record, which is heard of by itself. But it may be kept from here by a filter.
    const afterMs = this.#isHeld ? heldLookMs : isBehind ? Math.min(Math.max(leftMs, soonestMs), latestMs) : leftMs
    this.#context.wakeAtWallClock(this.#operator, nowMs + afterMs)
  }
}
