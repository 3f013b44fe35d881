/** Calling again what fails for a while. */
import type { Duration } from '../base/duration.ts'
import { sleep, systemTimers } from '../base/timers.ts'
import { invalid } from '../topology/physical.ts'
import type { Awaitable } from './types.ts'
import { ms } from './windows.ts'

export interface RetryOptions {
  /** Calls in all, the first included. Default: 3. */
  readonly attempts?: number
  /** Wait before the second call; doubles with each further one. Default: 100 ms. */
  readonly backoff?: Duration
  /** Longest wait. Default: 10 s. */
  readonly maxBackoff?: Duration
  /** Whether an error is worth another call. Default: each is. */
  readonly retryIf?: (error: unknown, attempt: number) => boolean
}

interface Plan {
  readonly attempts: number
  readonly backoffMs: number
  readonly maxBackoffMs: number
  readonly retryIf: (error: unknown, attempt: number) => boolean
}

/**
 * A function that calls `fn` again when it throws or rejects, after a while that doubles each time. The records of the
 * same key wait for it, others do not. When the last call fails too, its error goes the way of `errors.processing`.
 *
 * All waits together must stay well below `commit-barrier.timeout-ms`, as a commit waits for the records it contains.
 *
 * @throws EngineError `TOPOLOGY_INVALID` when `attempts` is no positive integer or a duration is malformed.
 * @example
 * const lookUp = async (order: Order) => ({ ...order, rate: await (await fetch('http://rates.example/')).json() })
 * orders.mapValues(withRetry(lookUp, { attempts: 5, backoff: '200ms' })).to('rated')
 */
export function withRetry<Args extends readonly unknown[], R>(
  fn: (...args: Args) => Awaitable<R>,
  options: RetryOptions = {},
): (...args: Args) => Promise<R> {
  const plan: Plan = {
    attempts: options.attempts ?? 3,
    backoffMs: ms(options.backoff ?? 100, 'the backoff of withRetry'),
    maxBackoffMs: ms(options.maxBackoff ?? 10_000, 'maxBackoff of withRetry'),
    retryIf: options.retryIf ?? (() => true),
  }
  if (!Number.isSafeInteger(plan.attempts) || plan.attempts < 1)
    throw invalid(`withRetry is to make ${plan.attempts} attempts; give an integer of at least 1`)
  return (...args) => attempt(() => fn(...args), plan)
}

async function attempt<R>(call: () => Awaitable<R>, plan: Plan): Promise<R> {
  for (let made = 1; ; made++) {
    try {
      return await call()
    } catch (error) {
      if (made >= plan.attempts || !plan.retryIf(error, made)) throw error
    }
    await sleep(systemTimers, Math.min(plan.maxBackoffMs, plan.backoffMs * 2 ** (made - 1)))
  }
}
