/** One timer that is set anew whenever the instant changes at which something is due. */
import type { Timers } from '../../base/timers.ts'

export class Alarm {
  readonly #timers: Timers
  readonly #ring: () => void
  #cancel: (() => void) | undefined
  #at = Number.POSITIVE_INFINITY

  constructor(timers: Timers, ring: () => void) {
    this.#timers = timers
    this.#ring = ring
  }

  /** Rings at this instant of the monotonic clock, and at no other; Infinity: not at all. */
  set(at: number, now: number): void {
    if (at === this.#at) return
    this.close()
    this.#at = at
    if (at === Number.POSITIVE_INFINITY) return
    this.#cancel = this.#timers.after(Math.max(0, Math.ceil(at - now)), () => {
      this.#at = Number.POSITIVE_INFINITY
      this.#ring()
    })
  }

  close(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }
}
