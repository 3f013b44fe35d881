/**
 * For how long a lane has had something to do: in its turns, and between them while functions have not answered. What came
 * through in that time is its speed. Time in which it had nothing before it does not count.
 */
import type { Clock } from '../../base/clock.ts'

export class Occupation {
  readonly #clock: Clock
  #ms = 0
  #at = 0
  #goesOn = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  reset(): void {
    this.#ms = 0
    this.#at = this.#clock.monotonic()
    this.#goesOn = false
  }

  /** A turn begins; answers when. */
  begins(): number {
    const now = this.#clock.monotonic()
    if (this.#goesOn) this.#ms += now - this.#at
    this.#at = now
    return now
  }

  /** The turn ends, and something is left to be done, or under way. */
  ends(goesOn: boolean): number {
    const now = this.#clock.monotonic()
    this.#ms += now - this.#at
    this.#at = now
    this.#goesOn = goesOn
    return this.#ms
  }
}
