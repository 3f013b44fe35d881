/**
 * Calls that are under way side by side, and callbacks that have to be alone. A processor makes calls for records of several
 * keys at once. What the callback of a schedule finds in a store, and deletes behind an `await`, must not change meanwhile.
 */
import type { Maybe } from '../contract.ts'

/** One of a processor. Whoever makes a call looks at `opened` first. */
export class Turns {
  #underWay = 0
  /** Those of a callback that waits for the calls under way. */
  #whenNone: (() => void) | undefined
  #opened: Promise<void> | undefined

  /** While a callback is under way or waits for its turn: when calls may go on. Undefined: they may. */
  get opened(): Promise<void> | undefined {
    return this.#opened
  }

  /** A call has begun whose promise is open. */
  entered(): void {
    this.#underWay++
  }

  /** Its promise is settled. */
  left(): void {
    this.#underWay--
    if (this.#underWay === 0) this.#whenNone?.()
  }

  /**
   * Runs what has to be alone: at once, or behind the calls under way. Those that come from now on wait, or there would be
   * no end of them. Callbacks are not to meet: whoever fires them waits for one before the next.
   */
  alone(work: () => Maybe): Maybe {
    const pending = this.#underWay === 0 ? work() : this.#none().then(work)
    return pending === undefined ? undefined : this.#closed(pending)
  }

  #none(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenNone = resolve
    })
  }

  async #closed(pending: Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#opened = promise
    try {
      await pending
    } finally {
      this.#whenNone = undefined
      this.#opened = undefined
      resolve()
    }
  }
}
