/** FIFO channels between simulated threads: every message takes its time, none overtakes another of its channel. */
import type { Scheduler } from './scheduler.ts'

export class Channel<T> {
  readonly #scheduler: Scheduler
  readonly #owner: number
  readonly #deliver: (message: T) => void
  readonly #slow: () => number
  #lastAt = 0

  constructor(scheduler: Scheduler, owner: number, deliver: (message: T) => void, slow: () => number) {
    this.#scheduler = scheduler
    this.#owner = owner
    this.#deliver = deliver
    this.#slow = slow
  }

  send(message: T): void {
    const at = Math.max(this.#lastAt, this.#scheduler.now + this.#slow())
    // Strictly later than the message before: ties are broken by chance, and a channel must not leave its order to it.
    this.#lastAt = at + 1e-6
    this.#scheduler.at(this.#lastAt - this.#scheduler.now, this.#owner, () => this.#deliver(message))
  }
}
