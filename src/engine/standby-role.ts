/**
 * The engine's part in high availability: it follows as a standby, becomes the active one when the coordinator says so,
 * hands over, steps down. The coordinator decides who should run; this makes sure that whoever runs begins with exactly
 * what its predecessors committed: it takes the producer's identity first, and reads ends and offsets only behind that.
 */
import { assert } from '../base/assert.ts'
import { sleep } from '../base/timers.ts'
import { BrokerError } from '../broker/port.ts'
import { EngineError, toWireError } from '../base/errors.ts'
import type { Affinity, TaskRef } from '../topology/affinity.ts'
import { allPartitions, type GroupPosition, groupPosition, offsetsMissing, tasksFor } from './group/assignment.ts'
import type { EngineOptions } from './engine-options.ts'
import { placeOf } from './recovery/failure.ts'
import type { HaCommandToEngine, RecordPlace } from './ha-contract.ts'
import type { EngineFact } from './protocol.ts'
import { type Restorer, tasksByLane } from './restore/restorer.ts'
import { type Run, RunOver } from './run.ts'
import { Standby } from './restore/standby.ts'
import { boundariesOf, refuseOtherState } from './group/made-anew.ts'
import type { ResolvedTopics } from './group/topics.ts'

/**
 * `standby`: follows. `promoting`: the identity is taken, the token yet to be verified. `activating`: on the way to
 * processing. `active`: processes, or restarts in place. `handing-over`: on the way back. `waiting`: somebody else holds
 * the token, or the restarts are used up, and the coordinator has yet to say what follows.
 */
type Stage = 'standby' | 'promoting' | 'activating' | 'active' | 'handing-over' | 'waiting'

export interface Activation {
  readonly position: GroupPosition
  readonly tasks: ReadonlyMap<number, readonly TaskRef[]>
  readonly changelogNext: ReadonlyMap<string, number>
  readonly tokenEpoch: number
}

export interface RoleHost {
  ended(): boolean
  topics(): ResolvedTopics
  /** The topics as they are now: some may have come since the run was opened. */
  lookUp(): Promise<ResolvedTopics>
  affinity(): Affinity
  /** The work's result, unless the run ends first: then it throws `RunOver`. */
  inRun<T>(work: Promise<T>): Promise<T>
  tell(fact: EngineFact): void
  failed(error: unknown): void
  /** Ends the engine for good. */
  fail(error: EngineError): void
  connected(connected: boolean): void
  setPaused(paused: boolean): void
  setIsolated(isolated: boolean): void
  /** Fences whoever has the identity; `conditional`: only where nobody took it since. */
  takeIdentity(conditional: boolean): Promise<void>
  giveUpIdentity(): void
  /** Global tables are no part of any commit: a standby has them, and keeps them when it takes over. */
  loadGlobals(run: Run): Promise<void>
  /** Takes the active's place in the group, fencing who had it there; resolves once it is ours. */
  joinGroup(): Promise<void>
  /** Gives up heartbeats, not the place: the successor takes that over. */
  standDown(): Promise<void>
  /** Ends the run: what is not committed is void. Answers with the next one. */
  closeRun(): Promise<Run>
  /** Opens the run: topics are looked up, lanes configured. */
  openRun(run: Run): Promise<void>
  /** From complete stores to processing; resolves behind the first commit, which proves the fence. */
  activate(activation: Activation): Promise<void>
  /** Records are let in, and commits are made: no restart in place is under way. */
  processing(): boolean
  /** Lets nothing in any more and commits what is under way; answers with the commit and the changelogs' ends. */
  commitAll(): Promise<{ readonly commitId: string; readonly changelogEnds: Readonly<Record<string, number>> }>
}

const retryMs = 200
const progressEveryMs = 200

export class StandbyRole {
  readonly #o: EngineOptions
  readonly #restorer: Restorer
  readonly #host: RoleHost
  #stage: Stage = 'standby'
  #standby: Standby | undefined
  #tokenEpoch = 0
  #reads: Promise<GroupPosition> | undefined
  #opened = Promise.withResolvers<void>()
  #verifyId = 0
  #verifying: { readonly id: number; readonly answer: (held: boolean) => void } | undefined
  #handOverId: number | undefined
  #exhausted: EngineError | undefined
  /** Counts the runs; a promotion lasts as long as the run in which it began. */
  #run = 0
  #promotedIn = -1

  constructor(options: EngineOptions, restorer: Restorer, host: RoleHost) {
    this.#o = options
    this.#restorer = restorer
    this.#host = host
    this.#report()
  }

  get following(): boolean {
    return this.#stage === 'standby'
  }

  /** Somebody else may run by now, or is to: nothing may be begun without the coordinator. */
  get waits(): boolean {
    return this.#stage === 'waiting'
  }

  command(message: HaCommandToEngine): void {
    if (this.#host.ended()) return
    switch (message.type) {
      case 'ha-promote':
        this.#promote(message.tokenEpoch, message.paused)
        return
      case 'ha-proceed':
        if (this.#stage === 'promoting' && message.tokenEpoch === this.#tokenEpoch) this.#step(() => this.#become())
        return
      case 'ha-hand-over':
        this.#handOverId = message.id
        // In the middle of a restart in place there is nothing to drain yet: it follows once the engine runs again.
        if (this.#stage === 'active' && this.#host.processing()) this.#step(() => this.#handOver())
        return
      case 'ha-step-down':
        this.#stepDown(message.reason)
        return
      case 'ha-isolate':
        this.#host.setIsolated(message.isolated)
        return
      case 'ha-token':
        if (this.#verifying?.id === message.id) this.#verifying.answer(message.held)
        return
      case 'ha-fail':
        if (this.#exhausted) this.#host.fail(this.#exhausted)
    }
  }

  /** The run's topics are known and its lanes configured: opens the stores and follows. */
  async open(run: Run): Promise<void> {
    this.#standby?.close()
    const topics = this.#host.topics()
    const standby = new Standby(this.#o, this.#restorer, this.#host)
    this.#standby = standby
    const globals = this.#retry(() => this.#host.loadGlobals(run))
    await Promise.all([this.#host.inRun(standby.open(run, this.#tasks(topics), topics)), globals])
    if (this.#stage === 'standby') this.#host.tell({ type: 'standby' })
    this.#opened.resolve()
  }

  /** An in-place restart, from the point where lanes are configured again. */
  async reopen(run: Run): Promise<void> {
    // Whoever was promoted while the lanes let go of the last run waits for these stores, and goes on from there.
    if (this.#stage === 'standby' || this.#promotedIn === this.#run) return this.open(run)
    const [held] = await Promise.all([this.#verify(), this.open(run)])
    if (!held) return this.#wait()
    if (!(await this.#takeAgain())) return this.#wait()
    await this.#become()
  }

  /** The lanes let go of the stores: what was read into them is void, and whoever wants them waits for the next run's. */
  runEnds(): void {
    this.#run++
    this.#reads = undefined
    this.#opened = Promise.withResolvers<void>()
  }

  /** Before an identity of this pod is used to find out what became of a commit. */
  async beforeResolving(): Promise<void> {
    if (await this.#verify()) return
    throw new EngineError('FENCED', 'another pod holds the token while the outcome of a commit was unknown')
  }

  /** No restart is left. A standby is of no use without one; an active leaves it to the coordinator what follows. */
  exhausted(error: EngineError): void {
    this.#exhausted = error
    this.#stage = 'waiting'
    this.#host.tell({ type: 'restarts-exhausted', error: toWireError(error), place: recordPlace(error) })
  }

  /** A record made the engine fail: told so that the next pod with the same record does not only repeat it. */
  faultSeen(error: unknown): void {
    const place = recordPlace(error)
    if (place) this.#host.tell({ type: 'fault-seen', place })
  }

  close(): void {
    this.#standby?.close()
  }

  #promote(tokenEpoch: number, paused: boolean): void {
    if (this.#stage !== 'standby') return
    this.#stage = 'promoting'
    this.#promotedIn = this.#run
    this.#tokenEpoch = tokenEpoch
    this.#host.setPaused(paused)
    this.#step(async () => {
      await this.#host.inRun(this.#opened.promise)
      await this.#retry(() => this.#host.takeIdentity(false))
      // Whoever had the identity can commit no more: what is read from here on is all there will be, verified or not.
      this.#reads = this.#read()
      this.#host.tell({ type: 'identity-taken', tokenEpoch })
    })
  }

  /** Everything that is committed into the stores; answers with the group's offsets. */
  #read(): Promise<GroupPosition> {
    const { settings, broker } = this.#o
    const standby = this.#standby
    assert(standby !== undefined, 'a pod is promoted whose stores are not open')
    // A standby may have followed for long. What came meanwhile, its predecessor has read: without those partitions the
    // watermark would go past their records.
    const asked = (async () => {
      const topics = await this.#retry(() => this.#host.lookUp())
      const partitions = allPartitions(settings, topics)
      return this.#retry(() => groupPosition(settings, broker, partitions, topics))
    })()
    const reads = (async () => {
      const [position] = await Promise.all([asked, this.#host.inRun(standby.drain(asked))])
      const topics = this.#host.topics()
      refuseOtherState(settings, topics, position)
      const own = boundariesOf(settings)
      const isCut = position.madeAnew.some(({ topic }) => own.has(topic))
      if (!isCut) for (const store of standby.stores) store.compareWith(position)
      standby.refuseShort(position.ends)
      if (standby.sawCommits && !position.newestTag && position.partitions.length > 0) throw offsetsMissing(settings)
      return position
    })()
    // Its failure is told where it is awaited, which may be never.
    reads.catch(() => undefined)
    return reads
  }

  async #become(): Promise<void> {
    this.#stage = 'activating'
    this.#host.tell({ type: 'restoring' })
    const [position] = await Promise.all([this.#reads ?? this.#read(), this.#host.inRun(this.#host.joinGroup())])
    this.#reads = undefined
    const standby = this.#standby
    assert(standby !== undefined, 'a pod is activated whose stores are not open')
    standby.close()
    await this.#host.activate({
      position,
      tasks: this.#tasks(this.#host.topics()),
      changelogNext: standby.positions,
      tokenEpoch: this.#tokenEpoch,
    })
    assert(this.#stage === 'activating', `a pod that is ${this.#stage} becomes active`)
    this.#stage = 'active'
    if (this.#handOverId !== undefined) await this.#handOver()
  }

  async #handOver(): Promise<void> {
    const id = this.#handOverId
    assert(id !== undefined, 'a pod hands over, and nobody has asked for it')
    this.#stage = 'handing-over'
    const { commitId, changelogEnds } = await this.#host.commitAll()
    this.#handOverId = undefined
    this.#stage = 'standby'
    this.#host.giveUpIdentity()
    // The lifecycle is to know before the coordinator does: nobody is told that a pod without the role runs.
    this.#host.tell({ type: 'role-given-up' })
    this.#host.tell({ type: 'handed-over', id, commitId, changelogEnds })
    await this.#followAgain()
  }

  #stepDown(reason: string): void {
    this.#handOverId = undefined
    this.#exhausted = undefined
    if (this.#stage === 'standby') {
      this.#opened.promise.then(() => this.#host.tell({ type: 'standby' }))
      return
    }
    this.#stage = 'standby'
    this.#host.tell({ type: 'role-given-up' })
    this.#host.tell({ type: 'log', level: 'warn', message: `stepping down: ${reason}` })
    this.#step(() => this.#followAgain())
  }

  /** Lanes give up their tasks; the stores stay as the last commit left them, and are followed from there. */
  async #followAgain(): Promise<void> {
    this.#host.giveUpIdentity()
    this.#reads = undefined
    this.#host.setPaused(false)
    this.#standby?.close()
    const leaving = this.#host.standDown()
    const run = await this.#host.closeRun()
    this.#host.tell({ type: 'stepped-down' })
    await leaving
    if (this.#host.ended()) return
    // Where a restart has begun another run meanwhile this ends here: that one is opened by its restart.
    await this.#retry(() => this.#host.openRun(run))
    await this.open(run)
  }

  async #wait(): Promise<void> {
    this.#stage = 'waiting'
  }

  #verify(): Promise<boolean> {
    const id = ++this.#verifyId
    const asked = new Promise<boolean>((answer) => {
      this.#verifying = { id, answer }
    })
    this.#host.tell({ type: 'verify-token', id })
    return this.#host.inRun(asked)
  }

  /** False where the token went to somebody else while the identity had to be taken by force. */
  async #takeAgain(): Promise<boolean> {
    try {
      await this.#retry(() => this.#host.takeIdentity(true))
      return true
    } catch (error) {
      if (!(error instanceof BrokerError) || error.errorClass !== 'epoch-lost') throw error
    }
    // The identity was taken by somebody who then lost the token, or by this pod's own clean-up at the broker.
    await this.#retry(() => this.#host.takeIdentity(false))
    return this.#verify()
  }

  #tasks(topics: ResolvedTopics): Map<number, TaskRef[]> {
    const { settings } = this.#o
    const affinity = this.#host.affinity()
    const tasks = tasksFor(settings, topics, affinity, allPartitions(settings, topics))
    return tasksByLane(tasks, affinity)
  }

  #step(work: () => Promise<void>): void {
    work().catch((error) => {
      if (!(error instanceof RunOver)) this.#host.failed(error)
    })
  }

  /** A broker that is out of reach is asked again, for as long as the run lasts. */
  async #retry<T>(call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await this.#host.inRun(call())
      } catch (error) {
        const passing = error instanceof BrokerError && ['unreachable', 'retriable'].includes(error.errorClass)
        if (!passing) throw error
        this.#host.connected(error.errorClass !== 'unreachable')
        await this.#host.inRun(sleep(this.#o.timers, retryMs))
      }
    }
  }

  #report(): void {
    this.#o.timers.after(progressEveryMs, () => {
      if (this.#host.ended()) return
      if (this.#standby && this.#stage !== 'active') {
        this.#o.fact({ type: 'standby-progress', progress: this.#standby.progress })
        this.#o.fact({ type: 'restore-progress', progress: this.#restorer.progress })
      }
      this.#report()
    })
  }
}

function recordPlace(error: unknown): RecordPlace | null {
  const { topic, partition, offset } = placeOf(error)
  return topic === undefined || partition === undefined || offset === undefined ? null : { topic, partition, offset }
}
