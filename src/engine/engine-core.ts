/**
 * The engine without its thread: opens what is assigned, lets records through to the lanes, commits, pauses, restarts
 * in place and ends. Everything it knows of the world is injected, so that the simulator runs the very same code.
 */
import type { TopicPartition } from '../base/ids.ts'
import { sleep } from '../base/timers.ts'
import { EngineError, toWireError } from '../errors.ts'
import { type Affinity, affinityOf, type TaskRef } from '../lanes/affinity.ts'
import type { FromLane, ToLane } from '../lanes/protocol.ts'
import { changelogEndsOf, type GroupPosition, groupPosition, notAmong, tasksFor, tasksOf } from './assignment.ts'
import { refuseBesidePods } from './beside-pods.ts'
import { Commits } from './commits.ts'
import type { Committer } from './committer.ts'
import { type EngineOptions, transactionalIdOf } from './engine-options.ts'
import { describeFailure, isFenced, restartable } from './failure.ts'
import { Flow } from './flow.ts'
import { GlobalTables } from './global-tables.ts'
import { GroupLink } from './group-link.ts'
import type { HaCommandToEngine } from './ha-contract.ts'
import { untilIdle } from './idle.ts'
import { LaneReset } from './lane-reset.ts'
import { configureLanes, resolveSinks } from './lane-setup.ts'
import { Producer } from './producer.ts'
import type { EngineFact } from './protocol.ts'
import { Restorer, tasksByLane } from './restorer.ts'
import { Restarts } from './restarts.ts'
import { Schedules } from './schedules.ts'
import { RunOver, RunScope } from './run-scope.ts'
import { type Activation, type RoleHost, StandbyRole } from './standby-role.ts'
import { Reports } from './reports.ts'
import { type ResolvedTopics, resolveTopics } from './topics.ts'

export type { EngineOptions } from './engine-options.ts'

const snapshotEveryMs = 100

export class EngineCore {
  readonly #o: EngineOptions
  #producer: Producer
  readonly #restorer: Restorer
  readonly #restarts: Restarts
  readonly #group: GroupLink
  readonly #globals: GlobalTables
  readonly #schedules: Schedules
  readonly #run = new RunScope()
  #topics: ResolvedTopics | undefined
  #affinity: Affinity | undefined
  #flow: Flow | undefined
  readonly #commits: Commits
  #tasks: TaskRef[] = []
  readonly #reports: Reports
  #paused = false
  #pauseId = 0
  #ended = false
  #ready = false
  /** The first assignment of this run is through: what comes later is added to it. */
  #opened = false
  readonly #laneReset: LaneReset
  /** With high availability: what this process is at the moment, and what the coordinator makes of it. */
  readonly #role: StandbyRole | undefined
  #isolated = false

  constructor(options: EngineOptions) {
    this.#o = options
    const { settings, broker } = options
    this.#producer = this.#newProducer()
    this.#reports = new Reports(options)
    this.#restarts = this.#makeRestarts()
    this.#restorer = new Restorer(broker, {
      run: () => this.#run.number,
      send: (lane, message) => options.send(lane, message, []),
      progress: (progress) => options.fact({ type: 'restore-progress', progress }),
      cancelled: (run) => run !== this.#run.number || this.#ended,
    })
    this.#globals = new GlobalTables(options, this.#restorer, {
      run: () => this.#run.number,
      ended: () => this.#ended,
      failed: (error) => this.#failed(error),
    })
    this.#group = this.#makeGroup()
    this.#schedules = new Schedules(options, {
      run: () => this.#run.number,
      dispatch: (source, records) => {
        this.#commits.touched()
        this.#flow?.inject(source, records)
      },
      changed: () => this.#commits.touched(),
    })
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
    this.#commits = new Commits(options, this.#reports, {
      run: () => this.#run.number,
      flow: () => this.#flow,
      producer: () => this.#producer,
      member: () => this.#group.member(),
      ready: () => this.#ready && !this.#restarts.underWay,
      ended: () => this.#ended,
      toLanes: (message) => this.#toLanes(message),
      extra: () => this.#schedules.freeze(),
      restart: (cause, timeout) => void this.#restart(cause, timeout),
      beforeResolving: async () => this.#role?.beforeResolving(),
    })
  }

  #makeRestarts(): Restarts {
    return new Restarts(this.#o, {
      run: () => this.#run.number,
      ended: () => this.#ended,
      commits: () => this.#reports.commits,
      mayRestart: (cause) => this.#mayRestart(cause),
      originTopics: () => this.#flow?.originTopics ?? [],
      aborted: () => this.#commits.aborted(),
      closeRun: () => this.#closeRun(),
      reopen: (run) => this.#guard(() => this.#reopen(run)),
      fail: (error) => this.#fail(error),
      failed: (error) => this.#failed(error),
      connected: (connected) => this.#reports.setConnected(connected),
      exhausted: (error) => this.#exhausted(error),
      tell: (fact) => this.#tell(fact),
    })
  }

  #makeGroup(): GroupLink {
    return new GroupLink(this.#o, {
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
      rebalanced: () => this.#reports.rebalanced(),
      failed: (error) => this.#failed(error),
      runEnded: () => this.#run.over,
      holdCommits: async (held) => this.#commits.committer?.hold(held),
    })
  }

  async start(): Promise<void> {
    void this.#show()
    this.#commits.start()
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
      await this.#commits.committer?.commitNow('shutdown')
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
        const { committer } = this.#commits
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
    if ('run' in message && message.run !== -1 && message.run !== this.#run.number) return
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
        this.#commits.touched()
        this.#reports.written(message.batches)
        this.#commits.committer?.laneMessage(message)
        return
      case 'ack':
      case 'applied':
        this.#commits.committer?.laneMessage(message)
        return
      case 'commit-wanted':
        this.#commits.touched()
        if (message.urgent) this.#commits.committer?.trigger('requested')
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
    }
  }

  async #open(): Promise<void> {
    const { settings } = this.#o
    this.#run.next()
    this.#topics = await resolveTopics(settings, this.#o.broker)
    // A standby takes nobody's identity.
    if (!this.#role) await refuseBesidePods(this.#o).then(() => this.#producer.init())
    await this.#configure(this.#topics)
    if (this.#role) await this.#role.open()
    else this.#group.join(this.#topics)
  }

  async #configure(topics: ResolvedTopics): Promise<void> {
    const { settings } = this.#o
    this.#topics = topics
    this.#affinity = affinityOf(settings.plan, settings.lanes, settings.split, topics.changelogPartitions)
    await configureLanes(this.#o, this.#run.number, topics, this.#affinity)
  }

  async #groupAssigned(added: readonly TopicPartition[], all: readonly TopicPartition[]): Promise<void> {
    // A restart under way opens everything anew by itself.
    if (this.#ended || this.#restarts.underWay) return
    if (this.#role) {
      // All partitions are the active's own, whatever the group says; this is how it hears of new ones.
      const fresh = notAmong(Object.keys(this.#flow?.assignment(true) ?? {}), all)
      if (this.#ready && fresh.length > 0) await this.#guard(() => this.#assigned(fresh))
      return
    }
    if (!this.#opened) await this.#guard(() => this.#assigned(all))
    else if (added.length > 0) await this.#guard(() => this.#assigned(added))
  }

  /** The group gave partitions: open what goes with them and begin, or go on. */
  async #assigned(partitions: readonly TopicPartition[]): Promise<void> {
    const run = this.#run.number
    const { settings, broker } = this.#o
    const topics = this.#topics as ResolvedTopics
    const affinity = this.#affinity as Affinity
    const position = await groupPosition(settings, broker, partitions)
    const mine = tasksFor(settings, topics, affinity, partitions)
    const known = new Set(this.#tasks.map((t) => `${t.subtopology}_${t.partition}`))
    const fresh = mine.filter((t) => !known.has(`${t.subtopology}_${t.partition}`))
    const byLane = tasksByLane(fresh, affinity)
    const first = !this.#opened
    // What is restored for shows from now on, paused; nothing of it is fetched before `begin`.
    if (first) this.#openFlow(position, topics, affinity)
    // Partitions that come later are restored while the others go on: that is no state of the whole application.
    const restoring = (): void => (first ? this.#tell({ type: 'restoring' }) : undefined)
    const restored = await this.#restorer.restore(byLane, topics, position, restoring)
    for (const [id, next] of restored) this.#commits.changelogNext.set(id, next)
    if (run !== this.#run.number || this.#ended) return
    const nextEpoch = (position.newestTag?.tokenEpoch ?? 0) + 1
    if (first) this.#commits.tokenEpoch = nextEpoch
    if (first) await this.#firstAssignment(position, topics)
    if (run !== this.#run.number || this.#ended) return
    const flow = this.#flow as unknown as Flow
    flow.restoreWatermark(position.watermark)
    const committer = this.#commits.committer as Committer
    // A task that began in the middle of a barrier would not know whether it belongs to it.
    await committer.hold(true)
    if (run !== this.#run.number || this.#ended) return
    // A partition's commits keep their order when it comes from another process, which counted by itself.
    if (!first && !this.#role) this.#commits.tokenEpoch = Math.max(this.#commits.tokenEpoch, nextEpoch)
    await this.#restorer.start(byLane, settings.lanes, this.#commits.beginning(flow.watermark))
    void committer.hold(false)
    if (run !== this.#run.number || this.#ended) return
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
      run: () => this.#run.number,
      failed: (error) => this.#failed(error),
      connected: (connected) => this.#reports.setConnected(connected),
      heldBytes: () => this.#commits.committer?.heldBytes ?? 0,
      worked: () => this.#commits.worked(),
      commitWanted: () => this.#commits.committer?.trigger('bytes'),
    })
    this.#flow.setPaused(this.#paused || this.#isolated)
    this.#flow.restoreWatermark(position.watermark)
    this.#flow.assign(position.partitions, topics)
  }

  async #firstAssignment({ newestTag }: GroupPosition, topics: ResolvedTopics): Promise<void> {
    this.#commits.open(newestTag, topics)
    await this.#globals.load(topics)
    await this.#schedules.restore()
  }

  /** Partitions go to another process: everything done for them is committed before they do. */
  async #revoking(partitions: readonly TopicPartition[]): Promise<void> {
    const { committer } = this.#commits
    if (!this.#flow || !committer || !this.#topics || this.#role) return
    this.#flow.revoke(partitions)
    await committer.commitNow('revoke')
    const gone = tasksOf(this.#o.settings, this.#topics, partitions)
    const ids = new Set(gone.map((t) => `${t.subtopology}_${t.partition}`))
    this.#tasks = this.#tasks.filter((t) => !ids.has(`${t.subtopology}_${t.partition}`))
    for (const [lane, tasks] of tasksByLane(gone, this.#affinity as Affinity)) {
      this.#o.send(lane, { type: 'close', run: this.#run.number, tasks }, [])
    }
  }

  async #drain(): Promise<void> {
    const run = this.#run.number
    const id = this.#pauseId
    await this.#commits.committer?.commitNow('pause')
    const same = run === this.#run.number && id === this.#pauseId
    if (same && this.#paused && this.#ready) this.#tell({ type: 'drained', id })
  }

  #laneFault(message: Extract<FromLane, { type: 'fault' }>): void {
    const error = describeFailure(message.error)
    const cause = error instanceof EngineError ? error : new EngineError('LANE_FAILED', String(error))
    this.#role?.faultSeen(cause)
    if (cause.recovery === 'restart-engine') void this.#restart(cause, false)
    else if (this.#role && !this.#role.following) void this.#refer(cause)
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
    this.#halt()
    const restartHelps = EngineError.is(shown) && (shown.domain === 'internal' || shown.code === 'LANE_STUCK')
    this.#o.fact({ type: 'failed', error: toWireError(shown), restartHelps })
    void this.#group.leave()
  }

  async #restart(cause: unknown, barrierTimeout: boolean): Promise<void> {
    // Whoever waits for the coordinator begins nothing by itself.
    if (!this.#role?.waits) await this.#restarts.begin(cause, barrierTimeout)
  }

  /** With high availability another pod may do better, unless the same record has failed there too. */
  async #refer(cause: EngineError): Promise<void> {
    if (this.#ended || this.#restarts.underWay || this.#role?.waits) return
    this.#tell({ type: 'restarting', cause: cause.message })
    await this.#exhausted(cause)
  }

  async #exhausted(error: EngineError): Promise<void> {
    if (!this.#role || this.#role.following) return this.#fail(error)
    await this.#closeRun()
    if (!this.#ended) this.#role.exhausted(error)
  }

  /** What is under way of this run is void; resolves when the lanes have let go of it. */
  async #closeRun(): Promise<void> {
    this.#ready = false
    this.#flow?.close()
    this.#flow = undefined
    this.#commits.close()
    this.#schedules.stop()
    this.#producer = this.#producer.successor()
    this.#opened = false
    this.#tasks = []
    this.#run.next()
    await this.#laneReset.reset(this.#run.number)
  }

  async #reopen(run: number): Promise<void> {
    const { settings, broker } = this.#o
    if (run !== this.#run.number) return
    if (!this.#role) await this.#producer.retake(this.#group.joined ? this.#group.member() : undefined)
    if (run !== this.#run.number) return
    const topics = await resolveTopics(settings, broker)
    if (run !== this.#run.number) return
    await this.#configure(topics)
    if (run !== this.#run.number) return
    if (this.#role) await this.#role.reopen()
    else if (this.#group.joined) await this.#group.inTurn(() => this.#assigned(this.#group.assignment))
    else this.#group.join(topics)
  }

  #roleHost(): RoleHost {
    const { broker, settings } = this.#o
    return {
      run: () => this.#run.number,
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
      loadGlobals: () => this.#globals.load(this.#topics as ResolvedTopics),
      joinGroup: () => this.#group.take(this.#topics as ResolvedTopics),
      standDown: () => this.#group.standDown(),
      closeRun: async () => {
        this.#restarts.over()
        await this.#closeRun()
      },
      openRun: async () => this.#configure(await resolveTopics(settings, broker)),
      activate: (activation) => this.#activate(activation),
      processing: () => this.#ready && this.#flow !== undefined,
      commitAll: () => this.#commitAll(),
    }
  }

  #newProducer(): Producer {
    const { settings, broker } = this.#o
    return new Producer(broker, transactionalIdOf(settings), settings.transactionTimeoutMs)
  }

  async #inRun<T>(work: Promise<T>): Promise<T> {
    const result = await this.#run.during(work)
    if (this.#ended) throw new RunOver('the engine has ended')
    return result
  }

  /** The stores are complete, and whoever ran before is fenced. */
  async #activate({ position, tasks, changelogNext, tokenEpoch }: Activation): Promise<void> {
    const { settings } = this.#o
    const topics = this.#topics as ResolvedTopics
    this.#openFlow(position, topics, this.#affinity as Affinity)
    const flow = this.#flow as Flow
    for (const [id, next] of changelogNext) this.#commits.changelogNext.set(id, next)
    // Tags never step back, also where the coordinator's topic was lost and its count began anew.
    this.#commits.tokenEpoch = Math.max(tokenEpoch, position.newestTag?.tokenEpoch ?? 0)
    await this.#inRun(this.#firstAssignment(position, topics))
    const committer = this.#commits.committer as unknown as Committer
    await this.#inRun(this.#restorer.start(tasks, settings.lanes, this.#commits.beginning(flow.watermark)))
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
    const committer = this.#commits.committer as Committer
    flow.setPaused(true)
    this.#schedules.stop()
    await this.#inRun(committer.commitNow('handoff'))
    const changelogEnds = changelogEndsOf(this.#topics as ResolvedTopics, this.#commits.changelogNext, flow.progress())
    return { commitId: `${this.#commits.tokenEpoch}.${committer.machine.epoch - 1}`, changelogEnds }
  }

  #setPaused(paused: boolean): void {
    this.#paused = paused
    this.#admit()
  }

  /** Cut off from the coordinator this pod may be the active one no longer: nothing is let in, nothing committed. */
  #setIsolated(isolated: boolean): void {
    if (isolated === this.#isolated) return
    this.#isolated = isolated
    this.#commits.hold(isolated)
    this.#admit()
  }

  #admit(): void {
    const stopped = this.#paused || this.#isolated
    this.#flow?.setPaused(stopped)
    if (stopped) this.#schedules.stop()
    else if (this.#ready) this.#schedules.start()
  }

  async #end(): Promise<void> {
    this.#halt()
    await this.#group.leave()
    this.#toLanes({ type: 'stop' })
  }

  #halt(): void {
    this.#ended = true
    this.#ready = false
    this.#role?.close()
    this.#flow?.close()
    this.#commits.end()
    this.#schedules.stop()
    this.#snapshot()
  }

  /** Runs a step; an error in it restarts or fails the engine. */
  #guard(step: () => Promise<void>): Promise<void> {
    return this.#restarts.guard(step)
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
      committer: this.#commits.committer,
      producer: this.#producer,
      group: this.#group,
      restarts: this.#restarts,
      changelogNext: this.#commits.changelogNext,
      ready: this.#ready,
    })
  }

  #toLanes(message: ToLane): void {
    for (let lane = 0; lane < this.#o.settings.lanes; lane++) this.#o.send(lane, message, [])
  }

  async #show(): Promise<void> {
    for (;;) {
      await sleep(this.#o.timers, snapshotEveryMs)
      if (this.#ended) return
      this.#snapshot()
    }
  }
}
