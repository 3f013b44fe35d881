/** What follows from a failure: a restart in place, the coordinator's decision, or FAILED. */
import { EngineError, toWireError } from '../../base/errors.ts'
import type { FromLane } from '../../lanes/protocol.ts'
import type { EngineOptions } from '../engine-options.ts'
import { describeFailure, isFenced, restartable } from './failure.ts'
import type { EngineFact } from '../protocol.ts'
import type { ResolvedTopics } from '../group/topics.ts'
import { placedRow } from '../restore/unreadable-row.ts'
import type { Run } from '../run.ts'
import { type RestartHost, Restarts } from './restarts.ts'
import type { StandbyRole } from '../standby-role.ts'

export interface RecoveryHost
  extends Pick<RestartHost, 'ended' | 'commits' | 'aborted' | 'transactionMs' | 'closeRun' | 'connected'> {
  /** With high availability: what this process is at the moment. */
  role(): StandbyRole | undefined
  topics(): ResolvedTopics | undefined
  /** Opens everything anew, unless another run has begun meanwhile. */
  reopen(run: Run): Promise<void>
  /** Nothing is let in or committed any more. */
  halt(): void
  leaveGroup(): void
  tell(fact: EngineFact): void
}

export class Recovery {
  readonly restarts: Restarts
  readonly #o: EngineOptions
  readonly #host: RecoveryHost

  constructor(options: EngineOptions, host: RecoveryHost) {
    this.#o = options
    this.#host = host
    this.restarts = new Restarts(options, {
      ended: () => host.ended(),
      commits: () => host.commits(),
      transactionMs: () => host.transactionMs(),
      mayRestart: (cause) => this.#mayRestart(cause),
      aborted: () => host.aborted(),
      closeRun: () => host.closeRun(),
      reopen: (run) => this.guard(() => host.reopen(run)),
      fail: (error) => this.fail(error),
      failed: (error) => this.failed(error),
      connected: (connected) => host.connected(connected),
      exhausted: (error) => this.#exhausted(error),
      tell: (fact) => host.tell(fact),
    })
  }

  /** Runs a step; an error in it restarts or fails the engine. */
  guard(step: () => Promise<void>): Promise<void> {
    return this.restarts.guard(step)
  }

  laneFault(run: Run, message: Extract<FromLane, { type: 'fault' }>): void {
    const error = describeFailure(message.error)
    const cause = error instanceof EngineError ? error : new EngineError('LANE_FAILED', String(error))
    if (cause.details.row !== undefined) void this.#unreadable(run, cause)
    else this.lane(cause)
  }

  /** Says which record it is, before anything else is done. */
  async #unreadable(run: Run, cause: EngineError): Promise<void> {
    const topics = this.#host.topics()
    const placed = topics ? await placedRow(this.#o.broker, topics, cause) : cause
    if (!run.isOver) this.lane(placed)
  }

  /** What follows where a lane has failed, or has ended. */
  lane(cause: EngineError): void {
    const role = this.#host.role()
    role?.faultSeen(cause)
    if (cause.recovery === 'restart-engine') {
      if (!role?.waits) void this.restarts.laneFailed(cause)
    } else if (role && !role.following) void this.#refer(cause)
    else this.failed(cause)
  }

  /** An error outside a commit: restart where that can help, else FAILED. */
  failed(error: unknown): void {
    if (this.#host.ended()) return
    if (this.#mayRestart(error)) void this.restart(error, false)
    else this.fail(error)
  }

  /** FAILED, for good. */
  fail(error: unknown): void {
    const shown = describeFailure(error)
    this.#host.halt()
    const restartHelps =
      EngineError.is(shown) && (shown.domain === 'internal' || ['LANE_STUCK', 'BROKER_STOPPED'].includes(shown.code))
    this.#o.fact({ type: 'failed', error: toWireError(shown), restartHelps })
    this.#host.leaveGroup()
  }

  async restart(cause: unknown, barrierTimeout: boolean): Promise<void> {
    // Whoever waits for the coordinator begins nothing by itself.
    if (!this.#host.role()?.waits) await this.restarts.begin(cause, barrierTimeout)
  }

  /** With high availability another pod may take over and hand back: the coordinator says what follows. */
  #mayRestart(error: unknown): boolean {
    return restartable(error) || (this.#host.role() !== undefined && isFenced(error))
  }

  /** With high availability another pod may do better, unless the same record has failed there too. */
  async #refer(cause: EngineError): Promise<void> {
    if (this.#host.ended() || this.restarts.underWay || this.#host.role()?.waits) return
    this.#host.tell({ type: 'restarting', cause: cause.message })
    await this.#exhausted(cause)
  }

  async #exhausted(error: EngineError): Promise<void> {
    const role = this.#host.role()
    if (!role || role.following) return this.fail(error)
    const run = await this.#host.closeRun()
    if (!this.#host.ended() && !run.isOver) role.exhausted(error)
  }
}
