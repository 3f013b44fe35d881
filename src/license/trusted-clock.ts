import type { Clock } from '../base/clock.ts'

/** A wall clock this much behind what is known counts as set back. */
export const setBackToleranceMs = 300_000

/**
 * A clock that cannot be turned back: the later of the wall clock and the last known instant plus the monotonic time
 * since. Known instants come from signed answers and from the instant remembered across restarts. Should the wall
 * clock run ahead for a while, nothing of that sticks.
 */
export class TrustedClock {
  readonly #clock: Clock
  #anchorMs: number
  #anchorMonotonic: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#anchorMs = clock.now()
    this.#anchorMonotonic = clock.monotonic()
  }

  now(): number {
    return Math.max(this.#clock.now(), this.leastNow())
  }

  /** The earliest that it can be now, whatever the wall clock says. */
  leastNow(): number {
    return this.#anchorMs + (this.#clock.monotonic() - this.#anchorMonotonic)
  }

  /** It was this instant, or later, when it became known. */
  knowInstant(instantMs: number): void {
    if (instantMs <= this.leastNow()) return
    this.#anchorMs = instantMs
    this.#anchorMonotonic = this.#clock.monotonic()
  }

  /** A fresh answer of the server says what time it is: that ends whatever was believed before, in both directions. */
  setInstant(instantMs: number): void {
    this.#anchorMs = instantMs
    this.#anchorMonotonic = this.#clock.monotonic()
  }

  /** By how much the wall clock is behind what is known; 0 within the tolerance. */
  setBackMs(): number {
    const behind = this.leastNow() - this.#clock.now()
    return behind > setBackToleranceMs ? behind : 0
  }
}
