/**
 * The engine without its thread: opens what is assigned, lets records through to the lanes, commits, pauses, restarts
 * in place and ends. Everything it knows of the world is injected, so that the simulator runs the very same code.
 */
import { engineIndex } from '../base/counters.ts'
import { partitionKey, type TopicPartition } from '../base/ids.ts'
import { sleep } from '../base/timers.ts'
import { BrokerError } from '../broker/port.ts'
import type { CommitReport } from '../commit/machine.ts'
import { encodeTag } from '../commit/tag.ts'
import { EngineError, toWireError } from '../errors.ts'
import { type Affinity, affinityOf, type TaskRef } from '../lanes/affinity.ts'
import type { FromLane, ToLane } from '../lanes/protocol.ts'
import { allTasks, changelogEndsOf, type GroupPosition, groupPosition, tasksOf } from './assignment.ts'
import { CommitPace } from './commit-pace.ts'
import { Committer, type Frozen } from './committer.ts'
import type { EngineOptions } from './engine-options.ts'
import { describeFailure, isFenced, restartable } from './failure.ts'
import { Flow } from './flow.ts'
import { GroupLink } from './group-link.ts'
import type { HaCommandToEngine } from './ha-contract.ts'
import { untilIdle } from './idle.ts'
import { LaneReset } from './lane-reset.ts'
import { configureLanes, loadGlobals, resolveSinks } from './lane-setup.ts'
import { Producer } from './producer.ts'
import type { EngineFact } from './protocol.ts'
import { Restorer, tasksByLane } from './restorer.ts'
import { Restarts } from './restarts.ts'
import { Schedules } from './schedules.ts'
import { type Activation, type RoleHost, RunOver, StandbyRole } from './standby-role.ts'
import { Reports } from './reports.ts'
import { type ResolvedTopics, resolveTopics } from './topics.ts'

export type { EngineOptions } from './engine-options.ts'

const snapshotEveryMs = 100
/** High availability is told of commits, not of every one. */
const committedEveryMs = 250

export class EngineCore {
  readonly #o: EngineOptions
  #producer: Producer
  readonly #restorer: Restorer
  readonly #restarts: Restarts
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
  readonly #pace: CommitPace
  #paused = false
  #pauseId = 0
  #ended = false
  #ready = false
  /** The first assignment of this run is through: what comes later is added to it. */
  #opened = false
  #dirty = false
  #tokenEpoch = 0
  readonly #laneReset: LaneReset
  /** With high availability: what this process is at the moment, and what the coordinator makes of it. */
  readonly #role: StandbyRole | undefined
  #isolated = false
  #committedToldAt = Number.NEGATIVE_INFINITY

  constructor(options: EngineOptions) {
    this.#o = options
    const { settings, broker } = options
    this.#producer = this.#newProducer()
    this.#restarts = new Restarts(options, {
      run: () => this.#run,
      ended: () => this.#ended,
      commits: () => this.#reports.commits,
      mayRestart: (cause) => this.#mayRestart(cause),
      aborted: () => {
        if (this.#committer) this.#reports.aborted(this.#committer.machine, this.#tokenEpoch)
      },
      closeRun: () => this.#closeRun(),
      reopen: (run) => this.#guard(() => this.#reopen(run)),
      fail: (error) => this.#fail(error),
      exhausted: (error) => this.#exhausted(error),
      tell: (fact) => this.#tell(fact),
    })
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
      resolved: (topics) => {
        this.#topics = topics
      },
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
    this.#laneReset = new LaneReset({
      lanes: settings.lanes,
      timers: options.timers,
      toLanes: (message) => this.#toLanes(message),
      stuck: (lane) => {
        this.#ended = true
        options.fact({ type: 'lane-stuck', lane })
      },
    })
    this.#role = settings.ha ? new StandbyRole(options, this.#restorer, this.#roleHost()) : undefined
    this.#pace = new CommitPace(
      settings.commitIntervalMs,
      settings.commitIdleIntervalMs,
      options.clock,
      options.timers,
      {
        tick: () => (this.#ended ? this.#pace.close() : this.#committer?.tick()),
        wanted: () => this.#ready && !this.#restarts.underWay && (this.#dirty || this.#flow?.moved() === true),
        caughtUp: () => this.#flow?.caughtUp === true,
        begin: () => this.#committer?.trigger('interval'),
      },
    )
  }

  async start(): Promise<void> {
    this.#every(snapshotEveryMs, () => this.#snapshot())
    this.#pace.start()
    await this.#guard(() => this.#open())
  }

  /** `drained` follows with the same number, unless the engine is unpaused before. */
  pause(id: number): void {
    this.#pauseId = id
    this.#setPaused(true)
    this.#snapshot()
    if (this.#ready) void this.#drain()
  }

  unpause(): void {
    this.#setPaused(false)
    this.#snapshot()
  }

  /** What the coordinator of high availability asks for. */
  haCommand(message: HaCommandToEngine): void {
    this.#role?.command(message)
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
    await untilIdle({
      timers: this.#o.timers,
      ended: () => this.#ended,
      running: () => {
        const committer = this.#committer
        return this.#ready && !this.#paused && this.#flow && committer ? { flow: this.#flow, committer } : undefined
      },
      commits: () => this.#reports.commits,
    })
    this.#snapshot()
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
        this.#laneReset.laneDone(message.lane)
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
    const { settings } = this.#o
    this.#run++
    this.#topics = await resolveTopics(settings, this.#o.broker)
    // A standby takes nobody's identity.
    if (!this.#role) await this.#producer.init()
    await this.#configure(this.#topics)
    if (this.#role) await this.#role.open()
    else this.#group.join(this.#topics)
  }

  async #configure(topics: ResolvedTopics): Promise<void> {
    const { settings } = this.#o
    this.#topics = topics
    this.#affinity = affinityOf(settings.plan, settings.lanes, settings.split, topics.changelogPartitions)
    await configureLanes(this.#o, this.#run, topics, this.#affinity)
  }

  async #groupAssigned(added: readonly TopicPartition[], all: readonly TopicPartition[]): Promise<void> {
    // A restart under way opens everything anew by itself.
    if (this.#ended || this.#restarts.underWay) return
    if (this.#role) {
      // All partitions are the active's own, whatever the group says; this is how it hears of new ones.
      const known = new Set(Object.keys(this.#flow?.assignment(true) ?? {}))
      const fresh = all.filter(({ topic, partition }) => !known.has(partitionKey(topic, partition)))
      if (this.#ready && fresh.length > 0) await this.#guard(() => this.#assigned(fresh))
      return
    }
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
    if (first) this.#tokenEpoch = (position.newestTag?.tokenEpoch ?? 0) + 1
    if (first) await this.#firstAssignment(position.newestTag, topics)
    if (run !== this.#run || this.#ended) return
    const flow = this.#flow as unknown as Flow
    flow.restoreWatermark(position.watermark)
    const committer = this.#committer as Committer
    // A task that began in the middle of a barrier would not know whether it belongs to it.
    await committer.hold(true)
    if (run !== this.#run || this.#ended) return
    // A partition's commits keep their order when it comes from another process, which counted by itself.
    if (!first && !this.#role) this.#tokenEpoch = Math.max(this.#tokenEpoch, (position.newestTag?.tokenEpoch ?? 0) + 1)
    await this.#restorer.start(byLane, settings.lanes, committer.machine.epoch, flow.watermark)
    void committer.hold(false)
    if (run !== this.#run || this.#ended) return
    this.#tasks.push(...fresh)
    this.#opened = true
    // Only now: what is fetched of them is dispatched at once, and the tasks have to be there.
    flow.assign(position.partitions, topics)
    flow.begin()
    this.#begun()
  }

  #begun(): void {
    this.#ready = true
    this.#restarts.over()
    this.#tell({ type: 'running' })
    if (this.#paused) void this.#drain()
    else if (!this.#isolated) this.#schedules.start()
  }

  #openFlow(position: GroupPosition, topics: ResolvedTopics, affinity: Affinity): void {
    // A start that a broker out of reach interrupted is made again from its beginning.
    this.#flow?.close()
    this.#flow = new Flow(this.#o, affinity, {
      run: () => this.#run,
      failed: (error) => this.#failed(error),
      connected: (connected) => this.#reports.setConnected(connected),
      heldBytes: () => this.#committer?.heldBytes ?? 0,
      worked: () => this.#pace.check(),
      commitWanted: () => this.#committer?.trigger('bytes'),
    })
    this.#flow.setPaused(this.#paused || this.#isolated)
    this.#flow.restoreWatermark(position.watermark)
    this.#flow.assign(position.partitions, topics)
  }

  async #firstAssignment(
    newestTag: { tokenEpoch: number; seq: number } | undefined,
    topics: ResolvedTopics,
  ): Promise<void> {
    const { settings, broker, clock } = this.#o
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
        beforeResolving: () => this.#role?.beforeResolving() ?? Promise.resolve(),
      },
      clock,
      { tokenEpoch: () => this.#tokenEpoch, groupId: settings.applicationId },
      newestTag ?? { tokenEpoch: 0, seq: 0 },
    )
    if (this.#isolated) void this.#committer.hold(true)
    await loadGlobals(settings, this.#restorer, topics, (source, topic, positions) =>
      this.#flow?.followGlobal(source, topic, positions),
    )
    await this.#schedules.restore()
  }

  /** Partitions go to another process: everything done for them is committed before they do. */
  async #revoking(partitions: readonly TopicPartition[]): Promise<void> {
    if (!this.#flow || !this.#committer || !this.#topics || this.#role) return
    this.#flow.revoke(partitions)
    await this.#committer.commitNow('revoke')
    const gone = tasksOf(this.#o.settings, this.#topics, partitions)
    const ids = new Set(gone.map((t) => `${t.subtopology}_${t.partition}`))
    this.#tasks = this.#tasks.filter((t) => !ids.has(`${t.subtopology}_${t.partition}`))
    for (const [lane, tasks] of tasksByLane(gone, this.#affinity as Affinity)) {
      this.#o.send(lane, { type: 'close', run: this.#run, tasks }, [])
    }
  }

  #freeze(epoch: number): Frozen {
    const flow = this.#flow as Flow
    this.#pace.began()
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
    const now = this.#o.clock.monotonic()
    if (!this.#role || now - this.#committedToldAt < committedEveryMs) return
    this.#committedToldAt = now
    this.#o.fact({ type: 'committed', commitId: `${this.#tokenEpoch}.${report.epoch}` })
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
    this.#role?.faultSeen(cause)
    if (cause.recovery === 'restart-engine') void this.#restart(cause, false)
    else this.#failed(cause)
  }

  /** An error outside a commit: restart where that can help, else FAILED. */
  #failed(error: unknown): void {
    if (this.#ended) return
    if (this.#mayRestart(error)) void this.#restart(error, false)
    else this.#fail(error)
  }

  /** With high availability another pod may take over and hand back: the coordinator says what follows. */
  #mayRestart(error: unknown): boolean {
    return restartable(error) || (this.#role !== undefined && isFenced(error))
  }

  /** FAILED, for good. */
  #fail(error: unknown): void {
    const shown = describeFailure(error)
    this.#ended = true
    this.#ready = false
    this.#role?.close()
    this.#flow?.close()
    this.#committer?.close()
    this.#schedules.stop()
    this.#snapshot()
    const restartHelps = EngineError.is(shown) && (shown.domain === 'internal' || shown.code === 'LANE_STUCK')
    this.#o.fact({ type: 'failed', error: toWireError(shown), restartHelps })
    void this.#group.leave()
  }

  async #restart(cause: unknown, barrierTimeout: boolean): Promise<void> {
    // Whoever waits for the coordinator begins nothing by itself.
    if (!this.#role?.waits) await this.#restarts.begin(cause, barrierTimeout)
  }

  async #exhausted(error: EngineError): Promise<void> {
    if (!this.#role || this.#role.following) {
      this.#fail(error)
      return
    }
    await this.#closeRun()
    if (!this.#ended) this.#role.exhausted(error)
  }

  /** What is under way of this run is void; resolves when the lanes have let go of it. */
  async #closeRun(): Promise<void> {
    this.#ready = false
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
    await this.#laneReset.reset(this.#run)
  }

  #runEnded = Promise.withResolvers<void>()

  async #reopen(run: number): Promise<void> {
    const { settings, broker } = this.#o
    if (run !== this.#run) return
    if (!this.#role) await this.#producer.retake(this.#group.joined ? this.#group.member() : undefined)
    if (run !== this.#run) return
    const topics = await resolveTopics(settings, broker)
    if (run !== this.#run) return
    await this.#configure(topics)
    if (run !== this.#run) return
    if (this.#role) await this.#role.reopen()
    else if (this.#group.joined) await this.#group.inTurn(() => this.#assigned(this.#group.assignment))
    else this.#group.join(topics)
  }

  // ── high availability ───────────────────────────────────────────────────────────────────────────────────────────

  #roleHost(): RoleHost {
    const { broker, settings } = this.#o
    return {
      run: () => this.#run,
      ended: () => this.#ended,
      topics: () => this.#topics as ResolvedTopics,
      affinity: () => this.#affinity as Affinity,
      inRun: (work) => this.#inRun(work),
      tell: (fact) => this.#tell(fact),
      failed: (error) => this.#failed(error),
      fail: (error) => this.#fail(error),
      connected: (connected) => this.#reports.setConnected(connected),
      setPaused: (paused) => this.#setPaused(paused),
      setIsolated: (isolated) => this.#setIsolated(isolated),
      takeIdentity: (conditional) => this.#producer.init(conditional && this.#producer.identity !== undefined),
      giveUpIdentity: () => {
        this.#producer.successor()
        this.#producer = this.#newProducer()
      },
      joinGroup: () => this.#group.take(this.#topics as ResolvedTopics),
      standDown: () => this.#group.standDown(),
      closeRun: async () => {
        this.#restarts.over()
        await this.#closeRun()
      },
      openRun: async () => this.#configure(await resolveTopics(settings, broker)),
      activate: (activation) => this.#activate(activation),
      commitAll: () => this.#commitAll(),
    }
  }

  #newProducer(): Producer {
    const { settings, broker } = this.#o
    const { applicationId, instanceId, guarantee, transactionTimeoutMs, ha } = settings
    // All pods share one identity: whoever takes it fences who had it.
    const id = guarantee === 'exactly-once' ? `${applicationId}-${ha ? 'active' : instanceId}` : null
    return new Producer(broker, id, transactionTimeoutMs)
  }

  async #inRun<T>(work: Promise<T>): Promise<T> {
    const run = this.#run
    const over = this.#runEnded.promise.then(() => {
      throw new RunOver('the run is over')
    })
    const result = await Promise.race([work, over])
    if (run !== this.#run || this.#ended) throw new RunOver('the run is over')
    return result
  }

  /** The stores are complete, and whoever ran before is fenced. */
  async #activate({ position, tasks, changelogNext, tokenEpoch }: Activation): Promise<void> {
    const { settings } = this.#o
    const topics = this.#topics as ResolvedTopics
    this.#openFlow(position, topics, this.#affinity as Affinity)
    const flow = this.#flow as Flow
    for (const [id, next] of changelogNext) this.#changelogNext.set(id, next)
    // Tags never step back, also where the coordinator's topic was lost and its count began anew.
    this.#tokenEpoch = Math.max(tokenEpoch, position.newestTag?.tokenEpoch ?? 0)
    await this.#inRun(this.#firstAssignment(position.newestTag, topics))
    const committer = this.#committer as unknown as Committer
    await this.#inRun(this.#restorer.start(tasks, settings.lanes, committer.machine.epoch, flow.watermark))
    this.#tasks = [...tasks.values()].flat()
    this.#opened = true
    // Fetched already, dispatched only once a commit has proved that nobody else took the identity meanwhile.
    flow.dispatcher.paused = true
    flow.begin()
    await this.#inRun(committer.commitNow('handoff'))
    flow.dispatcher.paused = this.#paused || this.#isolated
    this.#begun()
    flow.wake()
  }

  async #commitAll(): ReturnType<RoleHost['commitAll']> {
    const flow = this.#flow as Flow
    const committer = this.#committer as Committer
    flow.setPaused(true)
    this.#schedules.stop()
    await this.#inRun(committer.commitNow('handoff'))
    const changelogEnds = changelogEndsOf(this.#topics as ResolvedTopics, this.#changelogNext, flow.progress())
    return { commitId: `${this.#tokenEpoch}.${committer.machine.epoch - 1}`, changelogEnds }
  }

  #setPaused(paused: boolean): void {
    this.#paused = paused
    this.#admit()
  }

  /** Cut off from the coordinator this pod may be the active one no longer: nothing is let in, nothing committed. */
  #setIsolated(isolated: boolean): void {
    if (isolated === this.#isolated) return
    this.#isolated = isolated
    void this.#committer?.hold(isolated)
    this.#admit()
  }

  #admit(): void {
    const stopped = this.#paused || this.#isolated
    this.#flow?.setPaused(stopped)
    if (stopped) this.#schedules.stop()
    else if (this.#ready) this.#schedules.start()
  }

  #count(slot: number): void {
    const { counters } = this.#o
    counters[slot] = (counters[slot] as number) + 1
  }

  async #end(): Promise<void> {
    this.#ended = true
    this.#ready = false
    this.#role?.close()
    this.#flow?.close()
    this.#committer?.close()
    this.#pace.close()
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
      if (error instanceof RunOver) return
      this.#restarts.over()
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
      budget: this.#restarts.budget,
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
