/**
 * The way into one function of the application, for all tasks of a lane: how many calls are out at once and how many begin
 * in a second, how long one may take, and what becomes of calls while a service answers none of them. A record that
 * waits here has not begun: nobody takes it for one whose function does not return.
 */
import type { Clock } from '../../base/clock.ts'
import { sleep, type Timers } from '../../base/timers.ts'
import { type CallGate, isPromise, type Origin } from '../../operators/contract.ts'
import type { CallSpec } from '../../topology/operator-spec.ts'
import { CallLimit } from './call-limit.ts'

/** What calls wait by. */
export interface CallTimers {
  /** Until it is a call's turn; left out: each begins at once, whatever bounds their number. */
  readonly turns?: Timers
  /** Until a call that has failed is made again. */
  readonly pauses: Pick<Timers, 'after'>
  /** For how long a call may take. */
  readonly timeouts: Pick<Timers, 'after'>
}

export interface GateParts {
  readonly clock: Clock
  readonly timers: CallTimers
  /** Uniform in [0, 1). */
  readonly random: () => number
  readonly lanes: number
  readonly maxInFlight: number
  /** For the eyes of others. */
  show(gate: { readonly out: number; readonly waiting: number; readonly limit: number }): void
  /** The record's call has not begun, or waits before it is made again; then it goes on. */
  held(origin: Origin): void
  goesOn(origin: Origin): void
  /** The record's call has failed so many times, and is made again. */
  failed(origin: Origin, times: number, error: unknown): void
  /** Its call came through after all, or is given up. */
  settled(origin: Origin): void
}

/** What speaks against a record whose calls fail: how many of them, and how far the gate was at its first and its last failure. */
interface Blame {
  failures: number
  since: number | undefined
  succeeded: number
  unexplained: number
}

/** Twice as long a pause, and a service that is back would be tried only when a commit is overdue. */
const longestPauseMs = 5000

export class LaneCallGate implements CallGate {
  readonly #parts: GateParts
  readonly #spec: CallSpec
  readonly #name: string
  readonly #limit: CallLimit
  readonly #waiting: Array<() => void> = []
  /** Ends the pauses of calls that have failed. */
  readonly #pausing = new Set<() => void>()
  #out = 0
  /** Monotonic time at which the next call may begin, where their rate is bounded. */
  #nextAt = Number.NEGATIVE_INFINITY
  /** Calls that have begun, and the newest of them that came through. */
  #begun = 0
  #newestThrough = 0
  /** Calls that came through, and how many have failed since one did. */
  #succeeded = 0
  #failedInARow = 0
  #isClosed = false
  /** Failures of records since whose first one no later call has come through: the service may be away. */
  #unexplained = 0

  constructor(name: string, spec: CallSpec | undefined, parts: GateParts) {
    this.#name = name
    this.#spec = spec ?? {}
    this.#parts = parts
    this.#limit = new CallLimit(parts.maxInFlight, this.#fixedLimit())
    this.isPlain = spec === undefined
  }

  readonly isPlain: boolean

  #fixedLimit(): number | undefined {
    const { timers, lanes, maxInFlight } = this.#parts
    if (timers.turns === undefined) return maxInFlight
    const { concurrency } = this.#spec
    return concurrency === undefined ? undefined : Math.max(1, Math.floor(concurrency / lanes))
  }

  get isFree(): boolean {
    return this.isPlain && !this.#isClosed && this.#out < this.#limit.limit
  }

  get out(): number {
    return this.#out
  }

  get limit(): number {
    return this.#limit.limit
  }

  get waiting(): number {
    return this.#waiting.length
  }

  entered(): void {
    this.#out++
    if (this.#out >= this.#limit.limit) this.#limit.full()
    this.#parts.show(this)
  }

  left(isKept: boolean): void {
    this.#out--
    this.#parts.show(this)
    this.#limit.ended(isKept, this.#parts.clock.monotonic())
    // As many as there is room for; who finds none waits again.
    const room = Math.max(1, this.#limit.limit - this.#out)
    for (let left = Math.min(room, this.#waiting.length); left > 0; left--) this.#waiting.shift()?.()
  }

  run(origin: Origin, call: () => unknown): Promise<unknown> {
    return this.isPlain ? this.#runPlain(origin, call) : this.#runBounded(origin, call)
  }

  /** What waits does not go on: its records come again, in another run. Calls that are out come back to nobody. */
  close(): void {
    this.#isClosed = true
    this.#waiting.length = 0
    for (const end of [...this.#pausing]) end()
  }

  /** Nothing but the number of calls is bounded. */
  async #runPlain(origin: Origin, call: () => unknown): Promise<unknown> {
    const { held, goesOn } = this.#parts
    held(origin)
    while (this.#isClosed || this.#out >= this.#limit.limit) await this.#room()
    this.entered()
    goesOn(origin)
    let answer: unknown
    try {
      answer = await call()
    } catch (error) {
      this.left(false)
      throw error
    }
    this.left(true)
    return answer
  }

  #room(): Promise<void> {
    this.#limit.full()
    return new Promise((resolve) => {
      if (!this.#isClosed) this.#waiting.push(resolve)
    })
  }

  async #runBounded(origin: Origin, call: () => unknown): Promise<unknown> {
    const { breaker } = this.#spec
    const { held, goesOn, failed: again, settled } = this.#parts
    const blame: Blame = { failures: 0, since: undefined, succeeded: this.#succeeded, unexplained: this.#unexplained }
    for (let failed = 1; ; failed++) {
      held(origin)
      await this.#turn()
      goesOn(origin)
      const number = ++this.#begun
      try {
        const answer = await this.#call(call)
        this.#succeeded++
        this.#newestThrough = Math.max(this.#newestThrough, number)
        if (breaker !== undefined && this.#failedInARow >= breaker.after) this.#isBack()
        this.#failedInARow = 0
        this.left(true)
        if (failed > 1) settled(origin)
        return answer
      } catch (error) {
        this.#failedInARow++
        this.left(false)
        if (this.#isOfRecord(blame)) blame.failures++
        // Others come through, and this one does not, again and again: it is the record.
        if (breaker === undefined || blame.failures >= breaker.after) {
          if (failed > 1) settled(origin)
          throw error
        }
        held(origin)
        again(origin, failed, error)
        await this.#pause(failed, breaker.pauseMs)
      }
    }
  }

  /**
   * Whether a failure tells something of the record: others have come through since the one before, or all have by now,
   * and nobody else fails of whom it is not known. While a commit waits for this one, few others are let in that could
   * come through.
   */
  #isOfRecord(blame: Blame): boolean {
    const isSuspect = blame.since !== undefined && this.#newestThrough > blame.since
    const isOfRecord = this.#succeeded > blame.succeeded || (isSuspect && this.#unexplained === blame.unexplained)
    if (!isSuspect) this.#unexplained++
    blame.since ??= this.#begun
    blame.succeeded = this.#succeeded
    blame.unexplained = this.#unexplained
    return isOfRecord
  }

  async #call(call: () => unknown): Promise<unknown> {
    const { timeoutMs } = this.#spec
    const answer = call()
    if (timeoutMs === undefined || !isPromise(answer)) return answer
    const { promise: late, reject } = Promise.withResolvers<never>()
    const cancel = this.#parts.timers.timeouts.after(timeoutMs, () =>
      reject(new Error(`${this.#name} had no answer within ${timeoutMs} ms`)),
    )
    return Promise.race([answer, late]).finally(cancel)
  }

  /** Resolves when the call may be made; it counts as made then. */
  async #turn(): Promise<void> {
    for (;;) {
      if (this.#out < this.#limit.limit && !this.#isBroken && !this.#isClosed) break
      await this.#room()
    }
    this.entered()
    const { ratePerMs } = this.#spec
    const { turns } = this.#parts.timers
    if (ratePerMs === undefined || turns === undefined) return
    const now = this.#parts.clock.monotonic()
    const at = Math.max(now, this.#nextAt)
    this.#nextAt = at + this.#parts.lanes / ratePerMs
    if (at > now) await sleep(turns, at - now)
    if (this.#isClosed) await this.#room()
  }

  /** None of the last calls came through: one at a time tries whether any does. */
  get #isBroken(): boolean {
    const { breaker } = this.#spec
    return breaker !== undefined && this.#failedInARow >= breaker.after && this.#out > 0
  }

  /** Twice as long each time, and never at the same time as the others; no longer once the service is back. */
  #pause(failed: number, pauseMs: number): Promise<void> {
    const { timers, random } = this.#parts
    const ms = Math.min(longestPauseMs, pauseMs * 2 ** Math.min(failed - 1, 16)) * (0.5 + random() / 2)
    return new Promise((resolve) => {
      const end = (): void => {
        cancel()
        this.#pausing.delete(end)
        resolve()
      }
      const cancel = timers.pauses.after(ms, end)
      this.#pausing.add(end)
    })
  }

  /** What waits for it need not wait longer: no more of it goes at once than the limit allows. */
  #isBack(): void {
    for (const end of [...this.#pausing]) end()
  }
}
