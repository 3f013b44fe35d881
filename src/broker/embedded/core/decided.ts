/**
 * Steps that belong to decisions already taken. One for which the disk has no room is done later, before anything else is
 * written. Behind any other failure nothing is written any more: the memory is ahead of the disk then, and only a start
 * from what is stored brings them together again.
 */
import type { BrokerError } from '../../port.ts'
import { NoRoomError, stoppedBy } from './storage.ts'

export class Decided {
  /** In their order. Each may be repeated: what is done of it already stays as it is. */
  readonly #waiting: Array<() => void> = []
  #stopped: BrokerError | undefined

  /** Why nothing is written any more. */
  get stopped(): BrokerError | undefined {
    return this.#stopped
  }

  get waits(): boolean {
    return this.#waiting.length > 0
  }

  /** Does the step, or throws. */
  do(step: () => void): void {
    this.#waiting.push(step)
    this.finish()
  }

  /** Does what is left, or throws; says whether something was. */
  finish(): boolean {
    const left = this.#waiting.length
    for (let step = this.#waiting[0]; step !== undefined; step = this.#waiting[0]) {
      this.orStop(step)
      this.#waiting.shift()
    }
    if (this.#stopped !== undefined) throw this.#stopped
    return left > 0
  }

  /** Does a step of which nothing is done where there is no room for it. */
  orStop(step: () => void): void {
    if (this.#stopped !== undefined) throw this.#stopped
    try {
      step()
    } catch (cause) {
      if (cause instanceof NoRoomError) throw cause
      this.#stopped = stoppedBy(cause)
      throw this.#stopped
    }
  }
}
