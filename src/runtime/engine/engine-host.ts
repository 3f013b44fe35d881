/**
 * The control thread's side of the engine. It turns the facts that the threads report into lifecycle transitions, keeps
 * their last snapshots, and passes commands on. It runs no code of the application.
 */
import { type CountersView, engineBlockLength, laneBlockLength, laneIndex, newBlock } from '../../base/counters.ts'
import { longestDelayMs } from '../../base/timers.ts'
import type { BrokerAddress } from '../../broker/connect.ts'
import { Lifecycle, pausableStates, unpausableStates, whyNot } from '../../view/lifecycle.ts'
import type { HaCommandToEngine } from '../../engine/ha-contract.ts'
import type { EngineFact, EngineSnapshot, ToEngine } from '../../engine/protocol.ts'
import type { EngineSettings } from '../../engine/settings.ts'
import { createThreadDumper, type ThreadDumper } from '../threads/thread-dump.ts'
import type {
  GroupPlaces,
  BarrierSnapshot,
  CommandResult,
  ConsumerSnapshot,
  EngineCommands,
  EngineView,
  LifecycleState,
  OffsetsSnapshot,
  RestoreProgress,
  StateSnapshot,
  ThreadsSnapshot,
  WatermarkSnapshot,
} from '../../view/view.ts'
import { EngineError, fromWireError, toWireError, type WireError } from '../../base/errors.ts'
import type { StoreQuery, StoreRow } from '../../lanes/stores/store-query.ts'
import type { CompiledTopology } from '../../topology/compiled.ts'
import type { EngineHostOptions } from './engine-host-options.ts'
import { EngineThreads } from './engine-threads.ts'
import { Oversights } from './oversights.ts'
import { exitCodeAfter } from '../exit-codes.ts'
import { IdleWaits } from './idle-waits.ts'
import { LaneProgress } from './lane-progress.ts'
import { tuneThreadMemory } from '../threads/thread-memory.ts'
import type { AskedBroker } from '../why/asked-broker.ts'

/** How long the other threads have to end when one of them does not. */
const stuckPatienceMs = 500

export class EngineHost implements EngineView, EngineCommands {
  readonly #o: EngineHostOptions
  readonly #lifecycle: Lifecycle
  readonly #counters: CountersView
  readonly #threads: EngineThreads
  readonly #oversights: Oversights
  #dumper: ThreadDumper | undefined
  #snapshot: EngineSnapshot | undefined
  #places: GroupPlaces | null = null
  #restore: readonly RestoreProgress[] = []
  #failure: StateSnapshot['failure'] = null
  #error: EngineError | undefined
  #paused = false
  #pauseId = 0
  #pause: NonNullable<StateSnapshot['pause']> | null = null
  #stopping = false
  #lastSign: number
  #ended = false
  readonly #idle = new IdleWaits((id) => this.#send({ type: 'until-idle', id }))
  #drained: (id: number) => void = () => undefined
  #hurry: () => void = () => undefined
  /** Resolves when a stop is complete. */
  readonly #over: Promise<void>
  readonly #resolveOver: () => void

  constructor(options: EngineHostOptions) {
    this.#o = options
    const { clock, layout, settings, log } = options
    this.#lifecycle = new Lifecycle(clock.now(), options.historySize, ({ from, state }) =>
      log({ level: 'info', component: 'engine', message: `${from} → ${state}` }),
    )
    this.#counters = {
      layout,
      engine: newBlock(engineBlockLength(layout)),
      lanes: Array.from({ length: settings.lanes }, () => newBlock(laneBlockLength(layout))),
    }
    tuneThreadMemory()
    this.#lastSign = clock.monotonic()
    this.#oversights = new Oversights((message) => options.log({ level: 'warn', component: 'engine', message }))
    this.#threads = new EngineThreads(options, this.#counters, {
      fact: (fact) => this.#fact(fact),
      engineFailed: ({ message, stack }) => this.#fail({ code: 'UNKNOWN', message, stack, details: {} }, true),
      ending: () => this.#stopping || this.#ended,
      error: (message, fields) => options.log({ level: 'error', component: 'app', message, fields }),
    })
    const over = Promise.withResolvers<void>()
    this.#over = over.promise
    this.#resolveOver = over.resolve
  }

  // ── EngineView ──────────────────────────────────────────────────────────────────────────────────────────────────

  get applicationId(): string {
    return this.#o.applicationId
  }

  get lanes(): number {
    return this.#o.settings.lanes
  }

  get lanesAlive(): number {
    return this.#threads.lanesAlive
  }

  get split(): EngineSettings['split'] {
    return this.#o.settings.split
  }

  topology(): CompiledTopology {
    return this.#o.topology
  }

  state(): StateSnapshot {
    const { state, sinceMs, history } = this.#lifecycle
    const pause = this.#paused ? this.#pause : null
    return { current: state, sinceMs, history, failure: this.#failure, restore: this.#restore, pause }
  }

  watermarks(): WatermarkSnapshot | null {
    return this.#snapshot?.watermarks ?? null
  }

  offsets(): OffsetsSnapshot | null {
    return this.#snapshot?.offsets ?? null
  }

  consumer(): ConsumerSnapshot | null {
    const consumer = this.#snapshot?.consumer ?? null
    if (!consumer || !this.#paused) return consumer
    // True from the request on, before the engine thread has confirmed it.
    const entries = Object.entries(consumer.assignment).map(([id, a]) => [id, { ...a, paused: true }])
    return { ...consumer, assignment: Object.fromEntries(entries) as ConsumerSnapshot['assignment'] }
  }

  barriers(): BarrierSnapshot | null {
    return this.#snapshot?.barriers ?? null
  }

  async threads(options: { depth: number; signal?: AbortSignal }): Promise<ThreadsSnapshot> {
    this.#dumper ??= createThreadDumper({
      threads: () => this.#threads.list(),
      currentNode: (name) => this.#currentNode(name),
    })
    return this.#dumper.dump(options)
  }

  #currentNode(name: string): string | null {
    const block = this.#counters.lanes[Number(name.slice('lane-'.length))]
    const node = block?.[laneIndex.currentNode] ?? -1
    return this.#o.topology.nodes[node]?.name ?? null
  }

  diskFull(): string | null {
    return this.#snapshot?.diskFull ?? null
  }

  broker(): ReturnType<EngineView['broker']> {
    const { bootstrapServers } = this.#o
    const broker = this.#snapshot?.broker
    return {
      // Before the first exchange only a broker in this process is known to be there.
      connected: broker?.connected ?? bootstrapServers.startsWith('embedded:'),
      sinceMs: broker?.sinceMs ?? this.#lifecycle.sinceMs,
      fault: broker?.fault ?? null,
      bootstrapServers,
      trouble: this.#o.brokerTrouble(),
      nodes: this.#snapshot?.brokers ?? [],
    }
  }

  engineSilenceMs(): number {
    return this.#threads.started ? this.#o.clock.monotonic() - this.#lastSign : 0
  }

  counters(): CountersView {
    return this.#counters
  }

  get askedBroker(): AskedBroker {
    return this.#threads.broker
  }

  // ── EngineCommands ──────────────────────────────────────────────────────────────────────────────────────────────

  pause(who = 'the program that embeds it'): CommandResult {
    const refusal = this.#refusal('pause', pausableStates)
    if (refusal) return refusal
    this.#paused = true
    this.#pause = { who, sinceMs: this.#o.clock.now() }
    this.#to('DRAINING')
    this.#send({ type: 'pause', id: ++this.#pauseId })
    this.#o.ha?.pauseIntent(true)
    return { ok: true, state: 'DRAINING' }
  }

  unpause(): CommandResult {
    const refusal = this.#refusal('unpause', unpausableStates)
    if (refusal) return refusal
    this.#paused = false
    this.#to('RUNNING')
    this.#send({ type: 'unpause' })
    this.#o.ha?.pauseIntent(false)
    return { ok: true, state: 'RUNNING' }
  }

  #refusal(action: string, allowed: readonly LifecycleState[]): CommandResult | undefined {
    // The state follows the engine, and the role may be given away already: the next pod would not hear of it.
    const why = whyNot(this.#lifecycle.state, allowed, this.#o.ha?.tooLateToPause() ?? null)
    return why === null ? undefined : { ok: false, reason: `cannot ${action}: ${why}` }
  }

  /** A command of the coordinator. A pod that is promoted runs or is paused as its predecessor was. */
  haCommand(command: HaCommandToEngine): void {
    if (command.type === 'ha-promote') {
      this.#paused = command.paused
      this.#pause = { who: 'an operator, of the pod that was active before,', sinceMs: this.#o.clock.now() }
    }
    this.#send(command)
  }

  /** Before the pod hands over: nothing new is to be sent to it from now on. */
  announceStop(): void {
    if (this.#lifecycle.can('STOPPING')) this.#to('STOPPING')
  }

  /** Something outside of the engine makes it impossible to go on. */
  failWith(error: EngineError): void {
    this.#fail(toWireError(error), true)
  }

  // ── the threads ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** `broker` is made for the engine's thread, to which its port is transferred. */
  start(broker: BrokerAddress): void {
    this.#to('STARTING')
    this.#threads.start(broker)
  }

  /** Rows of a store, from all lanes. */
  async query(store: string, query: StoreQuery, limit: number): Promise<{ rows: StoreRow[]; count: number }> {
    if (!this.#threads.started || this.#stopping || this.#ended) {
      const { state } = this.#lifecycle
      throw new EngineError('STORE_UNAVAILABLE', `the store ${store} cannot be read: the state is ${state}`)
    }
    return this.#threads.queries.ask(store, query, limit)
  }

  /** Who has which task of the group; null while this process has no place in it. */
  get places(): GroupPlaces | null {
    return this.#places
  }

  /** Resolves when all input is processed and committed. */
  untilIdle(): Promise<void> {
    return this.#idle.begin()
  }

  /**
   * The first part of a stop: not ready any more, and what was let in is processed and committed, while the broker goes
   * on answering. Resolves when that is so, or after `withinMs`.
   */
  async drain(withinMs: number): Promise<void> {
    if (this.#stopping || this.#lifecycle.state !== 'RUNNING') return
    this.#to('STOPPING')
    const { promise, resolve } = Promise.withResolvers<void>()
    const id = ++this.#pauseId
    this.#drained = (drainedId) => {
      if (drainedId === id) resolve()
    }
    this.#send({ type: 'pause', id })
    const timer = setTimeout(resolve, Math.min(withinMs, longestDelayMs))
    await Promise.race([promise, this.#over])
    clearTimeout(timer)
  }

  /** Drains, commits and ends the threads within the deadline. Whatever still runs then ends with the process. */
  async stop(deadlineMs: number): Promise<number> {
    if (this.#stopping) {
      this.#hurry()
      await this.#over
      return this.#exitCode()
    }
    this.#stopping = true
    if (this.#lifecycle.can('STOPPING')) this.#to('STOPPING')
    if (this.#threads.started) {
      this.#send({ type: 'stop' })
      const { promise: late, resolve } = Promise.withResolvers<'late'>()
      this.#hurry = () => resolve('late')
      // Nobody waits for a lane that is known not to come back.
      const patience = Math.min(deadlineMs, this.#error?.code === 'LANE_STUCK' ? stuckPatienceMs : longestDelayMs)
      const timer = setTimeout(this.#hurry, patience)
      const progress = new LaneProgress(this.#counters.lanes)
      const half = setTimeout(() => progress.mark(), patience / 2)
      if ((await Promise.race([this.#threads.over, late])) === 'late') await this.#abandon(deadlineMs, progress)
      clearTimeout(timer)
      clearTimeout(half)
    }
    if (this.#lifecycle.can('STOPPED')) this.#to('STOPPED')
    this.#dumper?.close()
    this.#finish()
    this.#resolveOver()
    return this.#exitCode()
  }

  /** The deadline has passed, or somebody asked again. What still runs is not waited for. */
  async #abandon(deadlineMs: number, progress: LaneProgress): Promise<void> {
    const { log } = this.#o
    const stuck = progress.standing(this.#snapshot?.barriers.outstandingLanes ?? [])
    const sentence = `the shutdown was not over after ${deadlineMs} ms or was hurried on; what was not committed is replayed at the next start`
    log({ level: 'warn', component: 'engine', message: sentence })
    if (stuck.length > 0 && !this.#error) {
      const message = `${stuck.join(', ')} did not come back from a function of the application before the end of the shutdown`
      this.#error = fromWireError({ code: 'LANE_STUCK', message, stack: undefined, details: {} })
      log({ level: 'error', component: 'engine', message, fields: { code: 'LANE_STUCK' } })
    }
    await this.#threads.terminate()
  }

  /** As `kill -9` would: the threads end where they are. Nothing is drained, committed or announced. */
  async kill(): Promise<void> {
    this.#stopping = true
    this.#ended = true
    await this.#threads.terminate()
    this.#resolveOver()
  }

  #exitCode(): number {
    return exitCodeAfter(this.#error, this.#o.failureExitCode)
  }

  #send(message: ToEngine): void {
    this.#threads.send(message)
  }

  #to(state: LifecycleState): void {
    this.#lifecycle.transition(state, this.#o.clock.now())
  }

  #fact(fact: EngineFact): void {
    this.#lastSign = this.#o.clock.monotonic()
    this.#take(fact)
    this.#o.ha?.fact(fact)
  }

  #take(fact: EngineFact): void {
    switch (fact.type) {
      case 'started':
        this.#send({ type: 'start' })
        if (this.#paused) this.#send({ type: 'pause', id: this.#pauseId })
        return
      case 'snapshot':
        this.#snapshot = fact.snapshot
        this.#oversights.look(fact.snapshot.watermarks, this.#counters)
        return
      case 'places':
        this.#places = fact.places
        return
      case 'restore-progress':
        this.#restore = fact.progress
        return
      case 'restoring':
        if (this.#lifecycle.can('RESTORING')) this.#to('RESTORING')
        return
      case 'role-given-up':
      case 'standby':
        // Pausing goes with the active role, whichever pod has it by now.
        this.#paused = false
        if (this.#lifecycle.can('STANDBY')) this.#to('STANDBY')
        return
      case 'restarts-exhausted':
        this.#o.log({ level: 'error', component: 'engine', message: fact.error.message })
        return
      case 'running':
        this.#restore = []
        this.#running()
        return
      case 'drained':
        this.#drained(fact.id)
        // This answers a pause that was taken back meanwhile. It says nothing of the one in force.
        if (this.#lifecycle.state === 'DRAINING' && fact.id === this.#pauseId) this.#to('PAUSED')
        return
      case 'restarting':
        this.#o.log({ level: 'warn', component: 'engine', message: `restarting in place: ${fact.cause}` })
        if (this.#lifecycle.can('RESTARTING')) this.#to('RESTARTING')
        return
      case 'idle':
        this.#idle.answered(fact.id)
        return
      case 'stopped':
        return
      case 'failed':
        this.#fail(fact.error, fact.restartHelps)
        return
      case 'lane-stuck':
        this.#fail(
          {
            code: 'LANE_STUCK',
            message: `lane-${fact.lane} did not come back from a function of the application${fact.at ? `; ${fact.at}` : ''}`,
            stack: undefined,
            details: {},
          },
          true,
        )
        return
      case 'log':
        this.#o.log({
          level: fact.level,
          component: fact.component ?? 'engine',
          message: fact.message,
          ...(fact.fields && { fields: fact.fields }),
        })
    }
  }

  #running(): void {
    if (this.#stopping || this.#lifecycle.state === 'FAILED') return
    // The operator's intent outlives a restart. After a restart there is nothing left to drain.
    const wanted: readonly LifecycleState[] = this.#paused ? ['DRAINING', 'PAUSED'] : ['RUNNING']
    const target = wanted.find((state) => this.#lifecycle.can(state))
    if (target) this.#to(target)
  }

  #fail(wire: WireError, restartHelps: boolean): void {
    if (this.#error) return
    this.#error = fromWireError(wire)
    const { code, message, details } = wire
    const { topic, partition, offset } = details
    const known = topic !== undefined && partition !== undefined && offset !== undefined
    const record = known ? { topic, partition, offset } : undefined
    this.#failure = { code, message, restartHelps, ...(record && { record }) }
    this.#o.log({ level: 'error', component: 'engine', message, fields: { code, ...record } })
    if (this.#lifecycle.can('FAILED')) this.#to('FAILED')
    this.#finish()
  }

  #finish(): void {
    this.#idle.end(this.#error)
    if (this.#ended) return
    this.#oversights.look(null, this.#counters)
    this.#ended = true
    this.#o.ended(this.#exitCode(), this.#error)
  }
}
