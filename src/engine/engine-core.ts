/**
 * The engine without its thread: opens what is assigned, lets records through to the lanes, commits, pauses, restarts
 * in place and ends. Everything it knows of the world is injected, so that the simulator runs the very same code.
 */
import type { Clock } from '../base/clock.ts'
import { type CounterLayout, engineIndex } from '../base/counters.ts'
import type { Failpoint } from '../base/failpoint.ts'
import type { TopicPartition } from '../base/ids.ts'
import { sleep, type Timers } from '../base/timers.ts'
import { BrokerError, type BrokerPort } from '../broker/port.ts'
import type { CommitReport } from '../commit/machine.ts'
import { encodeTag } from '../commit/tag.ts'
import { EngineError, toWireError } from '../errors.ts'
import { type Affinity, affinityOf, type TaskRef } from '../lanes/affinity.ts'
import type { CursorTimestamp } from '../lanes/extraction.ts'
import type { FromLane, ToLane } from '../lanes/protocol.ts'
import { allTasks, type GroupPosition, groupPosition, tasksOf } from './assignment.ts'
import { Committer, type Frozen } from './committer.ts'
import { describeFailure, placeOf, restartable } from './failure.ts'
import { Flow } from './flow.ts'
import { GroupLink } from './group-link.ts'
import { configureLanes, loadGlobals, resolveSinks } from './lane-setup.ts'
import { Producer } from './producer.ts'
import type { EngineFact } from './protocol.ts'
import { RestartBudget } from './restart-budget.ts'
import { Restorer, tasksByLane } from './restorer.ts'
import { Schedules } from './schedules.ts'
import type { EngineSettings } from './settings.ts'
import { Reports } from './reports.ts'
import { type ResolvedTopics, resolveTopics } from './topics.ts'

export interface EngineOptions {
  readonly settings: EngineSettings
  readonly broker: BrokerPort
  readonly clock: Clock
  readonly timers: Timers
  readonly layout: CounterLayout
  readonly counters: Float64Array
  readonly laneCounters: readonly Float64Array[]
  /** Node names by index, for snapshots. */
  readonly nodeNames: readonly string[]
  readonly send: (lane: number, message: ToLane, transfer: ArrayBuffer[]) => void
  readonly fact: (fact: EngineFact) => void
  /** Timestamp functions of the application by source. */
  readonly extractors?: ReadonlyMap<number, CursorTimestamp>
  readonly failpoint?: Failpoint | undefined
}

/** A lane that does not give up its work within this time has to be ended with its process. */
const resetDeadlineMs = 5_000
const snapshotEveryMs = 100

export class EngineCore {
  readonly #o: EngineOptions
  #producer: Producer
  readonly #restorer: Restorer
  readonly #budget: RestartBudget
  readonly #group: GroupLink
  readonly #schedules: Schedules
  #run = 0
  #topics: ResolvedTopics | undefined
  #affinity: Affinity | undefined
  #flow: Flow | undefined
  #committer: Committer | undefined
  #changelogNext = new Map<string, number>()
  #tasks: TaskRef[] = []
  readonly #reports: Reports
  #paused = false
  #pauseId = 0
  #restarting = false
  #ended = false
  #ready = false
  /** The first assignment of this run is through: what comes later is added to it. */
  #opened = false
  #dirty = false
  #tokenEpoch = 0
  #resetting: { waiting: Set<number>; done: () => void } | undefined

  constructor(options: EngineOptions) {
    this.#o = options
    const { settings, broker } = options
    const id = settings.guarantee === 'exactly-once' ? `${settings.applicationId}-${settings.instanceId}` : null
    this.#producer = new Producer(broker, id, settings.transactionTimeoutMs)
    this.#budget = new RestartBudget(settings.maxRestarts, settings.restartWindowMs)
    this.#restorer = new Restorer(broker, {
      run: () => this.#run,
      send: (lane, message) => options.send(lane, message, []),
      progress: (progress) => options.fact({ type: 'restore-progress', progress }),
      cancelled: (run) => run !== this.#run || this.#ended,
    })
    this.#group = new GroupLink(options, {
      assigned: (added, all) => this.#groupAssigned(added, all),
      revoking: (partitions) => this.#revoking(partitions),
      // What was done for them and not committed is void: begin again from the last commit with what is left.
      lost: (partitions) => {
        if (partitions.length > 0)
          void this.#restart(new EngineError('TRANSACTION_ABORTED', 'the group went on without this member'), false)
      },
      connected: (connected) => this.#reports.setConnected(connected),
      rebalanced: () => this.#count(engineIndex.rebalances),
      failed: (error) => this.#failed(error),
      runEnded: () => this.#runEnded.promise,
      holdCommits: async (held) => this.#committer?.hold(held),
    })
    this.#schedules = new Schedules(options, {
      fire: (source, scheduledAt, count) => this.#fire(source, scheduledAt, count),
      dispatch: (source, records) => {
        this.#dirty = true
        this.#flow?.inject(source, records)
      },
      changed: () => {
        this.#dirty = true
      },
    })
    this.#reports = new Reports(options)
  }

  async start(): Promise<void> {
    this.#every(snapshotEveryMs, () => this.#snapshot())
    this.#every(this.#o.settings.commitIntervalMs, () => this.#interval())
    await this.#guard(() => this.#open())
  }

  /** `drained` follows with the same number, unless the engine is unpaused before. */
  pause(id: number): void {
    this.#pauseId = id
    this.#paused = true
    this.#flow?.setPaused(true)
    this.#schedules.stop()
    this.#snapshot()
    if (this.#ready) void this.#drain()
  }

  unpause(): void {
    this.#paused = false
    this.#flow?.setPaused(false)
    this.#snapshot()
    if (this.#ready) this.#schedules.start()
  }

  /** Drains, commits, leaves the group and stops the lanes. */
  async stop(): Promise<void> {
    if (this.#ended) {
      // It has failed: there is nothing to save, only threads to end.
      this.#toLanes({ type: 'stop' })
      return
    }
    if (this.#ready) {
      this.#flow?.setPaused(true)
      this.#schedules.stop()
      await this.#committer?.commitNow('shutdown')
    }
    await this.#end()
    this.#o.fact({ type: 'stopped' })
  }

  /** Resolves once all input is processed, the windows it closes are emitted, and everything is committed. */
  async untilIdle(): Promise<void> {
    let quietRounds = 0
    while (!this.#ended && quietRounds < 2) {
      if (!this.#ready || this.#paused || !this.#flow || !this.#committer) {
        await sleep(this.#o.timers, 10)
        continue
      }
      const { total } = this.#flow.dispatcher
      const flow = this.#flow
      const committer = this.#committer
      if (!(await this.#exhausted(flow))) {
        await sleep(this.#o.timers, 5)
        continue
      }
      const before = this.#reports.commits
      await committer.commitNow('idle')
      // What was on its way between sub-topologies may have come out as new input.
      const still = (await this.#exhausted(flow)) && flow.dispatcher.total === total
      // A restart in between makes all of it void: the input is read again.
      const done = still && this.#ready && flow === this.#flow && this.#reports.commits > before
      const quiet = done && !flow.closeInput()
      quietRounds = quiet ? quietRounds + 1 : 0
    }
    this.#snapshot()
  }

  async #exhausted(flow: Flow): Promise<boolean> {
    try {
      return await flow.exhausted()
    } catch (error) {
      if (error instanceof BrokerError && ['unreachable', 'retriable'].includes(error.errorClass)) return false
      throw error
    }
  }

  /** The thread of a lane has ended by itself: its state is gone, and with it the run of this process. */
  laneLost(lane: number, reason: string): void {
    if (this.#ended) return
    this.#failed(new EngineError('LANE_FAILED', `lane-${lane} has ended: ${reason}`, { lane }))
  }

  laneMessage(message: FromLane): void {
    if ('run' in message && message.run !== -1 && message.run !== this.#run) return
    switch (message.type) {
      case 'opened':
      case 'restored':
      case 'loaded':
      case 'started':
        this.#restorer.laneMessage(message)
        return
      case 'consumed':
        this.#flow?.consumed(message.lane, message.bytes)
        return
      case 'out':
        this.#dirty = true
        this.#reports.written(message.batches)
        this.#committer?.laneMessage(message)
        return
      case 'ack':
      case 'applied':
        this.#committer?.laneMessage(message)
        return
      case 'commit-wanted':
        this.#dirty = true
        if (message.urgent) this.#committer?.trigger('requested')
        return
      case 'emitted':
        this.#schedules.emitted(message.source, message.count, message.records)
        return
      case 'resolve-topics':
        void this.#guard(() => resolveSinks(this.#o, message.lane, message.topics))
        return
      case 'reset-done':
        this.#resetting?.waiting.delete(message.lane)
        if (this.#resetting?.waiting.size === 0) this.#resetting.done()
        return
      case 'fault':
        this.#laneFault(message)
        return
      case 'ready':
      case 'closed':
        return
    }
  }

  async #open(): Promise<void> {
    const { settings, broker } = this.#o
    this.#run++
    this.#topics = await resolveTopics(settings, broker)
    if (settings.guarantee === 'exactly-once' || settings.guarantee === 'at-least-once') await this.#producer.init()
    this.#affinity = affinityOf(settings.plan, settings.lanes, settings.split, this.#topics.changelogPartitions)
    await configureLanes(this.#o, this.#run, this.#topics, this.#affinity)
    this.#group.join(this.#topics)
  }

  async #groupAssigned(added: readonly TopicPartition[], all: readonly TopicPartition[]): Promise<void> {
    // A restart under way opens everything anew by itself.
    if (this.#ended || this.#restarting) return
    if (!this.#opened) await this.#guard(() => this.#assigned(all))
    else if (added.length > 0) await this.#guard(() => this.#assigned(added))
  }

  /** The group gave partitions: open what goes with them and begin, or go on. */
  async #assigned(partitions: readonly TopicPartition[]): Promise<void> {
    const run = this.#run
    const { settings, broker } = this.#o
    const topics = this.#topics as ResolvedTopics
    const affinity = this.#affinity as Affinity
    const position = await groupPosition(settings, broker, partitions)
    const mine = settings.split === 'in-process' ? allTasks(settings, affinity) : tasksOf(settings, topics, partitions)
    const known = new Set(this.#tasks.map((t) => `${t.subtopology}_${t.partition}`))
    const fresh = mine.filter((t) => !known.has(`${t.subtopology}_${t.partition}`))
    const byLane = tasksByLane(fresh, affinity)
    const first = !this.#opened
    // What is restored for shows from now on, paused; nothing of it is fetched before `begin`.
    if (first) this.#openFlow(position, topics, affinity)
    // Partitions that come later are restored while the others go on: that is no state of the whole application.
    const restoring = (): void => {
      if (first) this.#tell({ type: 'restoring' })
    }
    const restored = await this.#restorer.restore(byLane, topics, position, restoring)
    for (const [id, next] of restored) this.#changelogNext.set(id, next)
    if (run !== this.#run || this.#ended) return
    if (first) await this.#firstAssignment(position.newestTag, topics)
    if (run !== this.#run || this.#ended) return
    const flow = this.#flow as unknown as Flow
    flow.restoreWatermark(position.watermark)
    const committer = this.#committer as Committer
    // A task that began in the middle of a barrier would not know whether it belongs to it.
    await committer.hold(true)
    if (run !== this.#run || this.#ended) return
    // A partition's commits keep their order when it comes from another process, which counted by itself.
    this.#tokenEpoch = Math.max(this.#tokenEpoch, first ? 0 : (position.newestTag?.tokenEpoch ?? 0) + 1)
    await this.#restorer.start(byLane, settings.lanes, committer.machine.epoch, flow.watermark)
    void committer.hold(false)
    if (run !== this.#run || this.#ended) return
    this.#tasks.push(...fresh)
    this.#opened = true
    // Only now: what is fetched of them is dispatched at once, and the tasks have to be there.
    flow.assign(position.partitions, topics)
    this.#ready = true
    this.#restarting = false
    this.#reopening = false
    flow.begin()
    this.#tell({ type: 'running' })
    if (this.#paused) void this.#drain()
    else this.#schedules.start()
  }

  #openFlow(position: GroupPosition, topics: ResolvedTopics, affinity: Affinity): void {
    // A start that a broker out of reach interrupted is made again from its beginning.
    this.#flow?.close()
    this.#flow = new Flow(this.#o, affinity, {
      run: () => this.#run,
      failed: (error) => this.#failed(error),
      connected: (connected) => this.#reports.setConnected(connected),
      heldBytes: () => this.#committer?.heldBytes ?? 0,
      commitWanted: () => this.#committer?.trigger('bytes'),
    })
    this.#flow.setPaused(this.#paused)
    this.#flow.restoreWatermark(position.watermark)
    this.#flow.assign(position.partitions, topics)
  }

  async #firstAssignment(
    newestTag: { tokenEpoch: number; seq: number } | undefined,
    topics: ResolvedTopics,
  ): Promise<void> {
    const { settings, broker, clock } = this.#o
    this.#tokenEpoch = (newestTag?.tokenEpoch ?? 0) + 1
    this.#committer = new Committer(
      settings,
      broker,
      this.#producer,
      {
        run: () => this.#run,
        member: () => this.#group.member(),
        freeze: (epoch) => this.#freeze(epoch),
        toLanes: (message) => this.#toLanes(message),
        changelogTopic: (store) => topics.changelogs.get(store) ?? { topic: store, topicId: '' },
        committed: (frozen, next) => this.#committed(frozen, next),
        done: (report) => this.#commitDone(report),
        passed: this.#o.failpoint,
        restart: (cause, timeout) => void this.#restart(cause, timeout),
      },
      clock,
      { tokenEpoch: () => this.#tokenEpoch, groupId: settings.applicationId },
      newestTag ?? { tokenEpoch: 0, seq: 0 },
    )
    await loadGlobals(settings, this.#restorer, topics, (source, topic, positions) =>
      this.#flow?.followGlobal(source, topic, positions),
    )
    await this.#schedules.restore()
  }

  /** Partitions go to another process: everything done for them is committed before they do. */
  async #revoking(partitions: readonly TopicPartition[]): Promise<void> {
    if (!this.#flow || !this.#committer || !this.#topics) return
    this.#flow.revoke(partitions)
    await this.#committer.commitNow('revoke')
    const gone = tasksOf(this.#o.settings, this.#topics, partitions)
    const ids = new Set(gone.map((t) => `${t.subtopology}_${t.partition}`))
    this.#tasks = this.#tasks.filter((t) => !ids.has(`${t.subtopology}_${t.partition}`))
    for (const [lane, tasks] of tasksByLane(gone, this.#affinity as Affinity)) {
      this.#o.send(lane, { type: 'close', run: this.#run, tasks }, [])
    }
  }

  #interval(): void {
    this.#committer?.tick()
    if (!this.#ready || this.#restarting) return
    if (this.#dirty || this.#flow?.moved()) this.#committer?.trigger('interval')
  }

  #freeze(epoch: number): Frozen {
    const flow = this.#flow as Flow
    this.#dirty = false
    const positions = flow.freeze()
    const watermark = flow.watermark
    const tag = (maxTimestamp: number): string =>
      encodeTag({ tokenEpoch: this.#tokenEpoch, seq: epoch, maxTimestamp, watermark })
    const offsets = positions.map(({ topic, partition, offset, maxTimestamp }) => ({
      topic,
      partition,
      offset,
      metadata: tag(maxTimestamp),
    }))
    return { offsets, watermark, extra: this.#schedules.freeze() }
  }

  #committed(frozen: Frozen, next: ReadonlyMap<string, number>): void {
    this.#flow?.committed(frozen.offsets)
    for (const [id, offset] of next) this.#changelogNext.set(id, offset)
    this.#reports.tookEffect()
  }

  #commitDone(report: CommitReport): void {
    this.#reports.committed(report, this.#tokenEpoch)
    this.#flow?.wake()
  }

  async #drain(): Promise<void> {
    const run = this.#run
    const id = this.#pauseId
    await this.#committer?.commitNow('pause')
    const same = run === this.#run && id === this.#pauseId
    if (same && this.#paused && this.#ready) this.#tell({ type: 'drained', id })
  }

  #fire(source: number, scheduledAt: number, count: number): void {
    this.#count(engineIndex.scheduledRuns)
    const { send, settings } = this.#o
    send(source % settings.lanes, { type: 'tick', run: this.#run, source, scheduledAt, count }, [])
  }

  #laneFault(message: Extract<FromLane, { type: 'fault' }>): void {
    const error = describeFailure(message.error)
    const cause = error instanceof EngineError ? error : new EngineError('LANE_FAILED', String(error))
    if (cause.recovery === 'restart-engine') void this.#restart(cause, false)
    else this.#failed(cause)
  }

  /** An error outside a commit: restart where that can help, else FAILED. */
  #failed(error: unknown): void {
    if (this.#ended) return
    if (restartable(error)) {
      void this.#restart(error, false)
      return
    }
    const shown = describeFailure(error)
    this.#ended = true
    this.#ready = false
    this.#flow?.close()
    this.#committer?.close()
    this.#schedules.stop()
    this.#snapshot()
    const restartHelps = EngineError.is(shown) && (shown.domain === 'internal' || shown.code === 'LANE_STUCK')
    this.#o.fact({ type: 'failed', error: toWireError(shown), restartHelps })
    void this.#group.leave()
  }

  async #restart(cause: unknown, barrierTimeout: boolean): Promise<void> {
    if (this.#ended || (this.#restarting && !this.#reopening)) return
    if (!restartable(cause) && !barrierTimeout) {
      this.#failed(cause)
      return
    }
    this.#restarting = true
    this.#reopening = false
    this.#ready = false
    const { clock, counters, timers } = this.#o
    const shown = describeFailure(cause)
    const message = shown instanceof Error ? shown.message : String(shown)
    const unreachable = cause instanceof BrokerError && cause.errorClass === 'unreachable'
    const machine = this.#committer?.machine
    if (machine) this.#reports.aborted(machine, this.#tokenEpoch)
    if (!unreachable && !this.#budget.take(message, clock.monotonic(), this.#reports.commits)) {
      const often = this.#budget.fruitless ? 'again and again without one commit in between' : 'too often'
      const sentence = `the engine was restarted in place ${often}, last because ${message}`
      this.#failed(new EngineError('RESTARTS_EXHAUSTED', sentence, { ...placeOf(shown), cause }))
      return
    }
    counters[engineIndex.restarts] = (counters[engineIndex.restarts] as number) + 1
    this.#tell({ type: 'restarting', cause: message })
    this.#flow?.close()
    this.#flow = undefined
    this.#committer?.close()
    this.#committer = undefined
    this.#schedules.stop()
    this.#producer = this.#producer.successor()
    this.#opened = false
    this.#tasks = []
    this.#run++
    this.#runEnded.resolve()
    this.#runEnded = Promise.withResolvers<void>()
    await this.#resetLanes()
    if (this.#ended) return
    await sleep(timers, unreachable ? 200 : this.#budget.backoffMs())
    if (this.#ended) return
    this.#reopening = true
    const run = this.#run
    await this.#guard(() => this.#reopen(run))
  }

  #runEnded = Promise.withResolvers<void>()

  /** From here on a failure begins a further restart, and this one ends where it stands. */
  #reopening = false

  async #reopen(run: number): Promise<void> {
    const { settings } = this.#o
    if (run !== this.#run) return
    await this.#takeIdentity()
    if (run !== this.#run) return
    const topics = await resolveTopics(settings, this.#o.broker)
    if (run !== this.#run) return
    this.#topics = topics
    this.#affinity = affinityOf(settings.plan, settings.lanes, settings.split, this.#topics.changelogPartitions)
    await configureLanes(this.#o, this.#run, this.#topics, this.#affinity)
    if (this.#group.joined) await this.#group.inTurn(() => this.#assigned(this.#group.assignment))
    else this.#group.join(this.#topics)
  }

  /**
   * Takes the producer's identity again, unless somebody else has taken it. The transaction coordinator cannot tell a
   * successor from its own clean-up of a transaction that took too long; the group can: a successor has our place in it.
   */
  async #takeIdentity(): Promise<void> {
    try {
      await this.#producer.init(this.#producer.identity !== undefined)
    } catch (error) {
      const lost = error instanceof BrokerError && error.errorClass === 'epoch-lost'
      if (!lost || !this.#group.joined) throw error
      await this.#o.broker.heartbeat(this.#group.member())
      await this.#producer.init()
    }
  }

  #count(slot: number): void {
    const { counters } = this.#o
    counters[slot] = (counters[slot] as number) + 1
  }

  async #resetLanes(): Promise<void> {
    const { settings, timers, fact } = this.#o
    const waiting = new Set(Array.from({ length: settings.lanes }, (_, lane) => lane))
    await new Promise<void>((resolve) => {
      const cancel = timers.after(resetDeadlineMs, () => {
        const [lane = 0] = waiting
        this.#ended = true
        fact({ type: 'lane-stuck', lane })
        resolve()
      })
      const done = (): void => {
        cancel()
        resolve()
      }
      this.#resetting = { waiting, done }
      this.#toLanes({ type: 'reset', run: this.#run })
    })
    this.#resetting = undefined
  }

  async #end(): Promise<void> {
    this.#ended = true
    this.#ready = false
    this.#flow?.close()
    this.#committer?.close()
    this.#schedules.stop()
    this.#snapshot()
    await this.#group.leave()
    this.#toLanes({ type: 'stop' })
  }

  /** Runs a step; an error in it restarts or fails the engine. */
  async #guard(step: () => Promise<void>): Promise<void> {
    try {
      await step()
    } catch (error) {
      this.#restarting = false
      const unreachable = error instanceof BrokerError && ['unreachable', 'retriable'].includes(error.errorClass)
      if (unreachable && !this.#ended) {
        this.#reports.setConnected(false)
        this.#o.fact({ type: 'log', level: 'warn', message: `${error.message.replace(/\.$/, '')}; trying again` })
        await sleep(this.#o.timers, 500)
        if (!this.#ended) await this.#guard(step)
        return
      }
      this.#failed(error)
    }
  }

  /** A fact with the snapshot that goes with it: whoever asks at that moment is shown what is, not what was. */
  #tell(fact: EngineFact): void {
    this.#snapshot()
    this.#o.fact(fact)
  }

  #snapshot(): void {
    this.#reports.publish({
      flow: this.#flow,
      topics: this.#topics,
      committer: this.#committer,
      producer: this.#producer,
      group: this.#group,
      budget: this.#budget,
      changelogNext: this.#changelogNext,
      ready: this.#ready,
    })
  }

  #toLanes(message: ToLane): void {
    for (let lane = 0; lane < this.#o.settings.lanes; lane++) this.#o.send(lane, message, [])
  }

  #every(intervalMs: number, call: () => void): void {
    const again = (): void => {
      if (this.#ended) return
      call()
      this.#o.timers.after(intervalMs, again)
    }
    this.#o.timers.after(intervalMs, again)
  }
}
