/** For how long people are let wait for a broker that says nothing. */
import { EngineError } from '../../base/errors.ts'
import type { BrokerPort } from '../../broker/port.ts'

/** `signal` is aborted once nobody waits for the answer any more: what is not begun by then is left. */
export type Question<T> = (broker: BrokerPort, signal: AbortSignal) => Promise<T>

/**
 * Waits for as long as the broker goes on answering, however many calls that takes, and whoever's they are: a question
 * may wait for another one. The broker's own time limit is one of a single call.
 */
export class Patience {
  readonly #ms: number
  readonly #waiting = new Set<NodeJS.Timeout>()

  constructor(ms: number) {
    this.#ms = ms
  }

  /** @throws EngineError `BROKER_UNREACHABLE` where the broker has said nothing for so long. */
  async ask<T>(broker: BrokerPort, question: Question<T>): Promise<T> {
    const givenUp = new AbortController()
    const silence = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      this.#waiting.delete(timer)
      const error = new EngineError('BROKER_UNREACHABLE', `it has not answered for ${this.#ms / 1000} s`)
      givenUp.abort(error)
      silence.reject(error)
    }, this.#ms)
    this.#waiting.add(timer)
    try {
      return await Promise.race([question(this.#listeningTo(broker), givenUp.signal), silence.promise])
    } finally {
      this.#waiting.delete(timer)
      clearTimeout(timer)
    }
  }

  /** The same broker, whose answers are noticed. */
  #listeningTo(broker: BrokerPort): BrokerPort {
    const heard = (): void => {
      for (const timer of this.#waiting) timer.refresh()
    }
    return new Proxy(broker, {
      get(target, name) {
        const value = Reflect.get(target, name, target) as unknown
        if (typeof value !== 'function') return value
        return (...given: unknown[]): unknown => {
          const answer: unknown = value.apply(target, given)
          if (answer instanceof Promise) answer.then(heard, heard)
          return answer
        }
      },
    })
  }
}
