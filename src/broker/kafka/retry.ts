/** Repeats what may yet succeed, with growing pauses, until a deadline. */
import { BrokerError } from '../port.ts'
import { closedError, isTransient } from './errors.ts'

const firstPauseMs = 2
const longestPauseMs = 250

export interface RetryOptions {
  /** Asked before every repetition, for it may depend on whether there was contact by then. */
  readonly deadlineMs: () => number
  /** Codes that are final elsewhere, to repeat for a shorter while. */
  readonly also?: { readonly codes: readonly string[]; readonly forMs: number }
  /** Told of every failure that is about to be repeated. */
  readonly onFailure?: (failure: BrokerError) => void
}

export interface Pause {
  readonly over: Promise<void>
  end(): void
}

export class Retrier {
  readonly #closing = new AbortController()

  get closed(): boolean {
    return this.#closing.signal.aborted
  }

  close(): void {
    this.#closing.abort()
  }

  async run<T>(what: string, options: RetryOptions, attempt: (tries: number) => Promise<T>): Promise<T> {
    const startedAtMs = performance.now()
    let pauseMs = firstPauseMs
    let alsoSinceMs: number | undefined
    for (let tries = 0; ; tries++) {
      if (this.closed) throw closedError(what)
      try {
        return await attempt(tries)
      } catch (error) {
        if (this.closed) throw closedError(what)
        if (!(error instanceof BrokerError)) throw error
        // What else has failed before says nothing of these: a broker that comes back may not know all at once.
        const isAlso = options.also?.codes.includes(error.code) === true
        alsoSinceMs = isAlso ? (alsoSinceMs ?? performance.now()) : undefined
        if (performance.now() - (alsoSinceMs ?? startedAtMs) + pauseMs > patienceMs(error, options)) throw error
        options.onFailure?.(error)
        await this.pause(pauseMs)
        pauseMs = Math.min(longestPauseMs, pauseMs * 2)
      }
    }
  }

  /** Ends early when the client closes or the signal fires. */
  pause(durationMs: number, signal?: AbortSignal): Promise<void> {
    return this.endable(durationMs, signal).over
  }

  /** One that its owner may end as well. What ends with every answer must cost less than an `AbortController`, whose `abort` makes an error. */
  endable(durationMs: number, signal?: AbortSignal): Pause {
    const ends = signal ? [this.#closing.signal, signal] : [this.#closing.signal]
    if (ends.some((end) => end.aborted)) return { over: Promise.resolve(), end: () => undefined }
    const { promise: over, resolve } = Promise.withResolvers<void>()
    const end = (): void => {
      clearTimeout(timer)
      for (const signal of ends) signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, Math.max(0, durationMs))
    for (const signal of ends) signal.addEventListener('abort', end)
    return { over, end }
  }
}

function patienceMs(error: BrokerError, options: RetryOptions): number {
  if (error.errorClass === 'unreachable' || isTransient(error.code)) return options.deadlineMs()
  return options.also?.codes.includes(error.code) ? options.also.forMs : 0
}
