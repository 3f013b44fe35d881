/** Restarts in place: whether one more may be tried, and the way from a failure to the run that follows. */
import { engineIndex, restartCauseSlot, restartCauses } from '../../base/counters.ts'
import { sleep } from '../../base/timers.ts'
import { BrokerError } from '../../broker/port.ts'
import { EngineError } from '../../base/errors.ts'
import type { EngineOptions } from '../engine-options.ts'
import { LimitFound } from '../commit/topic-limits.ts'
import { describeFailure, isFenced, placeOf } from './failure.ts'
import type { EngineFact } from '../protocol.ts'
import { type Run, RunOver } from '../run.ts'
import { RestartBudget } from './restart-budget.ts'

export interface RestartHost {
  ended(): boolean
  /** Commits since the process began. */
  commits(): number
  mayRestart(cause: unknown): boolean
  /** For how long the transaction under way has been open; 0: there is none. */
  transactionMs(): number
  /** The open epoch is lost: for the list of the last commits. */
  aborted(): void
  /** Resolves when the lanes have let go of it, with the run that follows. */
  closeRun(): Promise<Run>
  reopen(run: Run): Promise<void>
  fail(error: unknown): void
  /** Restart where that can help, else FAILED. */
  failed(error: unknown): void
  connected(connected: boolean): void
  exhausted(error: EngineError): Promise<void>
  tell(fact: EngineFact): void
}

/** Before a restart that costs nothing of the budget. */
const freePauseMs = 200
const againMs = 500
/** A transaction that was open for this part of its timeout was ended for its age. */
const slowPart = 0.9

export class Restarts {
  readonly budget: RestartBudget
  readonly #o: EngineOptions
  readonly #host: RestartHost
  #underWay = false
  /** From here on a failure begins a further restart, and this one ends where it stands. */
  #reopening = false
  /** What a lane has failed with that had let go of the last run, and is to open the next one. */
  #laneFault: EngineError | undefined

  constructor(options: EngineOptions, host: RestartHost) {
    this.#o = options
    this.#host = host
    this.budget = new RestartBudget(options.settings.maxRestarts, options.settings.restartWindowMs)
  }

  get underWay(): boolean {
    return this.#underWay
  }

  /** Records are processed again, or somebody else decides what follows. */
  over(): void {
    this.#underWay = false
    this.#reopening = false
  }

  /** Runs a step; an error in it restarts or fails the engine. A broker that is out of reach is asked again. */
  async guard(step: () => Promise<void>): Promise<void> {
    const host = this.#host
    try {
      await step()
    } catch (error) {
      if (error instanceof RunOver) return
      const passing = error instanceof BrokerError && ['unreachable', 'retriable'].includes(error.errorClass)
      if (!passing || host.ended()) {
        this.over()
        host.failed(error)
        return
      }
      host.connected(false)
      this.#o.fact({ type: 'log', level: 'warn', message: `${error.message.replace(/\.$/, '')}; trying again` })
      await sleep(this.#o.timers, againMs)
      if (!host.ended()) await this.guard(step)
    }
  }

  /**
   * The broker's or the group's patience is over with a process that was not quick enough. Each of these takes as long as
   * that patience is: they come seldom enough to go on with, and say nothing of a failure.
   */
  #isSlowness(error: unknown): boolean {
    if (!EngineError.is(error) || error.code !== 'TRANSACTION_ABORTED') return false
    return error.details.late === true || this.#host.transactionMs() >= slowPart * this.#o.settings.transactionTimeoutMs
  }

  /** A lane has failed. It writes its stores at any time, also before the run that is to come is opened. */
  async laneFailed(cause: EngineError): Promise<void> {
    if (this.#underWay && !this.#reopening) this.#laneFault = cause
    else await this.begin(cause, false)
  }

  async begin(cause: unknown, barrierTimeout: boolean): Promise<void> {
    const host = this.#host
    if (host.ended() || (this.#underWay && !this.#reopening)) return
    if (!host.mayRestart(cause) && !barrierTimeout) {
      host.fail(cause)
      return
    }
    this.#underWay = true
    this.#reopening = false
    this.#laneFault = undefined
    const { clock, counters, timers } = this.#o
    const shown = describeFailure(cause)
    const message = shown instanceof Error ? shown.message : String(shown)
    const unreachable = cause instanceof BrokerError && cause.errorClass === 'unreachable'
    host.aborted()
    // Whoever is fenced does not try again and again: the coordinator of high availability is asked before.
    // What a topic takes is known better after each of these: they end by themselves, however many they are.
    const teaches = cause instanceof LimitFound
    const spends = !unreachable && !teaches && !isFenced(cause) && !this.#isSlowness(shown)
    const code = EngineError.is(shown) ? shown.code : 'OTHER'
    if (!spends) this.budget.note(message, clock.monotonic(), code)
    else if (!this.budget.take(message, clock.monotonic(), host.commits(), code)) {
      const often = this.budget.fruitless ? 'again and again without one commit in between' : 'too often'
      const sentence = `the engine was restarted in place ${often}, last because ${message}`
      await host.exhausted(new EngineError('RESTARTS_EXHAUSTED', sentence, { ...placeOf(shown), cause }))
      return
    }
    counters[engineIndex.restarts] = (counters[engineIndex.restarts] as number) + 1
    const known = restartCauses.indexOf(code as (typeof restartCauses)[number])
    const slot = restartCauseSlot(this.#o.layout, known < 0 ? restartCauses.indexOf('OTHER') : known)
    counters[slot] = (counters[slot] as number) + 1
    host.tell({ type: 'restarting', cause: message })
    const run = await host.closeRun()
    // A pod that stepped down meanwhile has begun a run of its own.
    if (host.ended() || run.isOver) return
    await sleep(timers, spends ? this.budget.backoffMs() : freePauseMs)
    if (host.ended() || run.isOver) return
    this.#reopening = true
    // Over a lane that has failed since, nothing can be opened: it is reset once more.
    if (this.#laneFault !== undefined) await this.begin(this.#laneFault, false)
    else await host.reopen(run)
  }
}
