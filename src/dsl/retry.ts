/** How asynchronous functions are called: again when they fail, and within bounds. */
import type { Duration } from '../base/duration.ts'
import { systemRandom } from '../base/random.ts'
import { sleep, systemTimers } from '../base/timers.ts'
import type { CallSpec } from '../topology/operator-spec.ts'
import { checkOptions, type Names } from '../topology/check-given.ts'
import { invalid } from '../topology/physical.ts'
import { type Awaitable, type Named, namedOptions, type Stored, storedOptions } from './types.ts'
import { ms } from './windows.ts'

/** How often `withRetry` calls a function, and how long it waits in between. */
export interface RetryOptions {
  /** How many calls are made at most, the first included. Default: 3. */
  readonly attempts?: number
  /** The wait before the second call. It doubles with each further one, and is by chance up to a half shorter. Default: 100 ms. */
  readonly backoff?: Duration
  /** The longest wait. Default: 10 s. */
  readonly maxBackoff?: Duration
  /** Whether another call is made after an error. Default: always. */
  readonly retryIf?: (error: unknown, attempt: number) => boolean
}

const retryOptions: Names<RetryOptions> = { attempts: true, backoff: true, maxBackoff: true, retryIf: true }

interface Plan {
  readonly attempts: number
  readonly backoffMs: number
  readonly maxBackoffMs: number
  readonly retryIf: (error: unknown, attempt: number) => boolean
}

/**
 * Makes a function that calls `fn` again when it throws or rejects, after a wait that doubles each time. Records of the
 * same key wait for it; others do not. When the last call fails, too, its error goes the way of `errors.processing`.
 * In a sub-topology with state (a store, timers, a schedule) a commit closes each partition as a whole: behind a call that
 * lasts longer than a commit interval, all later records of its partition wait.
 *
 * To the engine, all calls and waits of one record are one call. Together they must stay below
 * `commit-barrier.timeout-ms`. They take real time in the test driver, too: tests want a short `backoff`.
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
  checkOptions('withRetry', options, retryOptions)
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
    // Calls that failed together are not made again together.
    const part = 0.5 + systemRandom() / 2
    await sleep(systemTimers, part * Math.min(plan.maxBackoffMs, plan.backoffMs * 2 ** (made - 1)))
  }
}

/**
 * How the function of one operator is called where it is asynchronous, typically because it asks a service. Records of one
 * key always wait for one another. In joins it is the joiner, in aggregates the function that folds a value in; what a join
 * of streams tells without a partner, at the end of its window, is not bounded by it.
 *
 * @example
 * const lookUp = async (order: Order) => ({ ...order, rate: await (await fetch('http://rates.example/')).json() })
 * orders.mapValues(lookUp, { concurrency: 32, timeout: '2s', rate: '100/s', breaker: {} })
 */
export interface CallSettings {
  /**
   * Calls at once, over all lanes of a process, at least one a lane. Default: found out, as many as make more come through,
   * up to `lane.max-in-flight` a lane.
   */
  readonly concurrency?: number
  /** A call that has no answer by then has failed; should it come, it is of no interest any more. Default: none. */
  readonly timeout?: Duration
  /** Most calls that begin in a time, over all lanes of a process: `'100/s'`, `'5000/m'`. Default: not bounded. */
  readonly rate?: string
  /**
   * Calls that fail are made again, after a while that doubles each time, by chance a little shorter. After `after` failures
   * in a row, whichever records they were of, one call at a time is made until one succeeds: the application waits for the
   * service and does not fail. A record whose call fails `after` times while others come through goes the way of
   * `errors.processing`; where nothing else comes, nobody knows whose fault it is, and the application waits.
   * Defaults: 5 and 1 s. Left out: the first failure goes that way.
   */
  readonly breaker?: { readonly after?: number; readonly pause?: Duration }
}

const callOptions: Names<CallSettings> = { concurrency: true, timeout: true, rate: true, breaker: true }
export const calledOptions: Names<Named & CallSettings> = { ...namedOptions, ...callOptions }
export const foldOptions: Names<Stored & CallSettings> = { ...storedOptions, ...callOptions }
const breakerOptions: Names<NonNullable<CallSettings['breaker']>> = { after: true, pause: true }

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** @throws EngineError `TOPOLOGY_INVALID` for what makes no sense, and for options of the method that there are not. */
export function callsOf<Options extends CallSettings>(
  method: string,
  settings: Options | undefined,
  names: Names<NoInfer<Options>>,
): CallSpec | undefined {
  checkOptions(method, settings, names)
  if (settings === undefined) return undefined
  const { concurrency, timeout, rate, breaker } = settings
  checkOptions(`the breaker of ${method}`, breaker, breakerOptions)
  if (concurrency === undefined && timeout === undefined && rate === undefined && breaker === undefined)
    return undefined
  if (concurrency !== undefined) positiveInteger(concurrency, 'concurrency')
  return {
    ...(concurrency !== undefined && { concurrency }),
    ...(timeout !== undefined && { timeoutMs: ms(timeout, 'the timeout of a call') }),
    ...(rate !== undefined && { ratePerMs: ratePerMs(rate) }),
    ...(breaker !== undefined && {
      breaker: {
        after: positiveInteger(breaker.after ?? 5, 'after of a breaker'),
        pauseMs: ms(breaker.pause ?? 1000, 'the pause of a breaker'),
      },
    }),
  }
}

function positiveInteger(value: number, what: string): number {
  if (!Number.isSafeInteger(value) || value < 1) throw invalid(`${what} is ${value}; give an integer of at least 1`)
  return value
}

function ratePerMs(rate: string): number {
  const parts = /^(\d+(?:\.\d+)?)\/(ms|s|m|h)$/.exec(rate)
  const perMs = parts === null ? 0 : Number(parts[1]) / (unitMs[parts[2] as string] as number)
  if (!(perMs > 0)) throw invalid(`the rate of calls is ${JSON.stringify(rate)}; write it as '100/s' or '5000/m'`)
  return perMs
}
