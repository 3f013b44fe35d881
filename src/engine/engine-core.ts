/**
 * The engine without its thread: opens what is assigned, lets records through to the lanes, commits, pauses, restarts
 * in place and ends. Everything it knows of the world is injected, so that the simulator runs the very same code.
 */
import { sleep } from '../base/timers.ts'
import { EngineError } from '../base/errors.ts'
import type { Affinity } from '../topology/affinity.ts'
import type { FromLane, ToLane } from '../lanes/protocol.ts'
import { refuseLeftBehind } from './group/left-behind.ts'
import { refuseBesidePods } from './group/mixed-mode-guard.ts'
import { Commits } from './commit/commits.ts'
import type { EngineOptions } from './engine-options.ts'
import { GlobalTables } from './restore/global-tables.ts'
import { GroupLink } from './group/group-link.ts'
import type { HaCommandToEngine } from './ha-contract.ts'
import { producerOf } from './commit/identity.ts'
import { untilIdle } from './idle.ts'
import { type LaneReceivers, takeLaneMessage } from './lane-messages.ts'
import { LaneReset } from './recovery/lane-reset.ts'
import { LaneWatch, sentenceOf } from './recovery/lane-watch.ts'
import { confirmPlace } from './group/own-place.ts'
import { Processing, type ProcessingParts } from './processing.ts'
import type { Producer } from './commit/producer.ts'
import type { EngineFact } from './protocol.ts'
import { Recovery } from './recovery/recovery.ts'
import { Restorer } from './restore/restorer.ts'
import { Schedules } from './schedules.ts'
import { type Run, Runs } from './run.ts'
import { type RoleHost, StandbyRole } from './standby-role.ts'
import { type EngineParts, Reports, snapshotEveryMs } from './reports.ts'
import { type ResolvedTopics, resolveTopics } from './group/topics.ts'

export type { EngineOptions } from './engine-options.ts'

export class EngineCore {
  readonly #o: EngineOptions
  #producer: Producer
  readonly #restorer: Restorer
  readonly #recovery: Recovery
  readonly #group: GroupLink
  readonly #globals: GlobalTables
  readonly #schedules: Schedules
  readonly #runs = new Runs()
  readonly #commits: Commits
  readonly #processing: Processing
  readonly #reports: Reports
  #paused = false
  #pauseId = 0
  #ended = false
  #ready = false
  readonly #laneReset: LaneReset
  readonly #watch: LaneWatch
  readonly #receivers: LaneReceivers
  /** With high availability: what this process is at the moment, and what the coordinator makes of it. */
  readonly #role: StandbyRole | undefined
  #isolated = false
  #lastOrigins: readonly string[] = []

  constructor(options: EngineOptions) {
    this.#o = options
    const { settings, laneCounters, clock } = options
    this.#producer = producerOf(this.#o)
    this.#reports = new Reports(options)
    this.#watch = new LaneWatch(laneCounters, clock, settings.barrierTimeoutMs, settings.commitIntervalMs)
    this.#recovery = this.#makeRecovery()
    this.#restorer = this.#makeRestorer()
    this.#globals = new GlobalTables(options, this.#restorer, {
      ended: () => this.#ended,
      failed: (error) => this.#recovery.failed(error),
    })
    this.#group = this.#makeGroup()
    this.#schedules = new Schedules(options, {
      dispatch: (source, records) => {
        this.#commits.touched()
        this.#processing.flow?.inject(source, records)
      },
      changed: () => this.#commits.touched(),
    })
    this.#laneReset = new LaneReset(options, {
      stillMs: (lane, toldMs) => this.#watch.stillMs(lane, toldMs),
      stuck: (lane) => {
        this.#ended = true
        const at = sentenceOf(this.#watch, lane, this.#originTopics, options.nodeNames)
        options.fact({ type: 'lane-stuck', lane, ...(at && { at }) })
      },
    })
    this.#role = settings.ha ? new StandbyRole(options, this.#restorer, this.#roleHost()) : undefined
    this.#commits = new Commits(options, this.#reports, {
      flow: () => this.#processing.flow,
      producer: () => this.#producer,
      place: this.#group,
      ready: () => this.#ready && !this.#recovery.restarts.underWay,
      ended: () => this.#ended,
      toLanes: (message) => this.#toLanes(message),
      extra: () => this.#schedules.freeze(),
      restart: (cause, timeout) => void this.#recovery.restart(cause, timeout),
      beforeResolving: async () => this.#role?.beforeResolving(),
      watch: this.#watch,
      originTopics: () => this.#originTopics,
    })
    const parts = { restorer: this.#restorer, schedules: this.#schedules, commits: this.#commits }
    this.#processing = this.#makeProcessing({ ...parts, runs: this.#runs, globals: this.#globals })
    const around = { laneReset: this.#laneReset, recovery: this.#recovery, reports: this.#reports }
    this.#receivers = { ...parts, ...around, processing: this.#processing }
  }

  #makeRestorer(): Restorer {
    const { settings, broker, clock, timers, send, fact } = this.#o
    return new Restorer(broker, {
      maxBytes: settings.bufferedMaxBytes,
      settings,
      isLost: (store) => this.#commits.lost.has(store),
      hasLostOffsets: () => this.#commits.hasLostOffsets,
      producer: () => this.#producer,
      clock,
      pause: () => sleep(timers, 100),
      log: (message) => fact({ type: 'log', level: 'info', message }),
      send: (lane, message) => send(lane, message, []),
      progress: (progress) => fact({ type: 'restore-progress', progress }),
      ended: () => this.#ended,
    })
  }

  #makeRecovery(): Recovery {
    return new Recovery(this.#o, {
      ended: () => this.#ended,
      commits: () => this.#reports.commits,
      role: () => this.#role,
      topics: () => this.#processing.topics,
      aborted: () => this.#commits.aborted(),
      transactionMs: () => {
        const since = this.#producer.transaction?.openSince ?? null
        return since === null ? 0 : this.#o.clock.monotonic() - since
      },
      closeRun: () => this.#closeRun(),
      reopen: (run) => this.#reopen(run),
      halt: () => this.#halt(),
      leaveGroup: () => void this.#group.leave(),
      connected: (connected) => this.#lost(connected),
      tell: (fact) => this.#tell(fact),
    })
  }

  #makeProcessing(parts: ProcessingParts): Processing {
    return new Processing(this.#o, parts, {
      ended: () => this.#ended,
      stopped: () => this.#stopped,
      restarting: () => this.#recovery.restarts.underWay,
      ready: () => this.#ready,
      guard: (step) => this.#recovery.guard(step),
      restoring: () => this.#tell({ type: 'restoring' }),
      connected: (connected, why) => this.#reports.link.told('input', connected, why),
      failed: (error) => this.#recovery.failed(error),
      begun: () => this.#begun(),
    })
  }

  #makeGroup(): GroupLink {
    return new GroupLink(this.#o, {
      assigned: (added, all) => this.#processing.groupAssigned(added, all),
      revoking: (partitions) => this.#processing.revoking(partitions),
      // What was done for them and not committed is void: begin again from the last commit with what is left.
      lost: (partitions) => {
        if (partitions.length > 0)
          void this.#recovery.restart(
            new EngineError('TRANSACTION_ABORTED', 'the group went on without this member', { late: true }),
            false,
          )
      },
      connected: (connected, why) => this.#reports.link.told('group', connected, why),
      resolved: (topics) => this.#processing.resolved(topics),
      rebalanced: () => this.#reports.rebalanced(),
      failed: (error) => this.#recovery.failed(error),
      runEnded: () => this.#runs.current.over,
      holdCommits: () => this.#commits.holdOfRun(),
    })
  }

  async start(): Promise<void> {
    void this.#show()
    this.#commits.start()
    await this.#recovery.guard(() => this.#open())
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
      this.#processing.flow?.setPaused(true)
      this.#schedules.stop()
      await this.#commits.committer?.commitNow('shutdown')
    }
    this.#halt()
    await this.#group.leave()
    this.#toLanes({ type: 'stop' })
    this.#o.fact({ type: 'stopped' })
  }

  /** Resolves once all input is processed, the windows it closes are emitted, and everything is committed; false: it ended before. */
  async untilIdle(): Promise<boolean> {
    const isIdle = await untilIdle({
      timers: this.#o.timers,
      ended: () => this.#ended,
      running: () => {
        const { committer } = this.#commits
        const { flow } = this.#processing
        return this.#ready && !this.#paused && flow && committer ? { flow, committer } : undefined
      },
      commits: () => this.#reports.commits,
      forgetting: () => this.#commits.hasExpired,
      warn: (message) => this.#o.fact({ type: 'log', level: 'warn', message }),
    })
    this.#snapshot()
    return isIdle
  }

  /** What is at hand waits until lanes have done more of what they have; or for those who write to a topic between sub-topologies. */
  get awaitsLanes(): boolean {
    return this.#processing.flow?.dispatcher.refuses === true
  }
  get awaitsWriters(): boolean {
    return this.#processing.flow?.awaitsWriters === true
  }

  /** Commits what was done so far; resolves when that is through, or void. */
  async commit(): Promise<void> {
    await this.#commits.committer?.commitNow('requested')
  }

  /** Publishes a snapshot now, out of its turn. */
  show(): void {
    this.#snapshot()
  }

  /** The thread of a lane has ended by itself: its state is gone, and with it the run. The next one has a new thread. */
  laneLost(lane: number, reason: string): void {
    if (this.#ended) return
    this.#laneReset.lost(lane)
    this.#reports.diskFull(lane, null)
    this.#recovery.lane(new EngineError('LANE_FAILED', `lane-${lane} has ended: ${reason}`, { lane }))
  }

  laneMade(lane: number): void {
    this.#laneReset.made(lane)
  }

  laneMessage(message: FromLane): void {
    const run = this.#runs.current
    if ('run' in message && message.run !== -1 && message.run !== run.number) return
    takeLaneMessage(this.#o, this.#receivers, run, message)
  }

  async #open(): Promise<void> {
    const run = this.#runs.next()
    const over = (): boolean => this.#ended || run.isOver
    const topics = await resolveTopics(this.#o.settings, this.#o.broker)
    this.#processing.resolved(topics)
    // A standby takes nobody's identity.
    if (!this.#role) await refuseBesidePods(this.#o, over).then(() => this.#producer.init())
    await refuseLeftBehind(this.#o, over)
    await this.#processing.configure(run, topics)
    if (this.#role) await this.#role.open(run)
    else this.#group.join(topics)
  }

  #begun(): void {
    this.#ready = true
    this.#recovery.restarts.over()
    this.#tell({ type: 'running' })
    if (this.#paused) void this.#drain()
    else if (!this.#isolated) this.#schedules.start(this.#runs.current)
  }

  async #drain(): Promise<void> {
    const run = this.#runs.current
    const id = this.#pauseId
    await this.#commits.committer?.commitNow('pause')
    const same = !run.isOver && id === this.#pauseId
    if (same && this.#paused && this.#ready) this.#tell({ type: 'drained', id })
  }

  /** What is under way of this run is void; resolves when the lanes have let go of it, with the next one. */
  async #closeRun(): Promise<Run> {
    this.#ready = false
    this.#reports.link.forget('input')
    this.#processing.close()
    this.#commits.close()
    this.#schedules.stop()
    this.#producer = this.#producer.successor()
    const run = this.#runs.next()
    this.#role?.runEnds()
    await this.#laneReset.reset(run)
    return run
  }

  async #reopen(run: Run): Promise<void> {
    const { settings, broker } = this.#o
    if (run.isOver) return
    if (!this.#role) await this.#producer.retake(this.#group.joined ? () => this.#confirmPlace(run) : undefined)
    if (run.isOver) return
    const topics = await resolveTopics(settings, broker)
    if (run.isOver) return
    await this.#processing.configure(run, topics)
    if (run.isOver) return
    if (this.#role) await this.#role.reopen(run)
    else if (this.#group.joined) await this.#group.inPlace(run, () => this.#processing.reassigned(run, this.#group))
    else this.#group.join(topics)
  }

  #lost(connected: boolean): void {
    if (!connected) this.#reports.link.failed()
  }

  #confirmPlace(run: Run): Promise<void> {
    const { broker, timers } = this.#o
    const over = (): boolean => this.#ended || run.isOver
    return confirmPlace({ broker, timers, place: this.#group, over })
  }

  #roleHost(): RoleHost {
    return {
      ended: () => this.#ended,
      topics: () => this.#processing.topics as ResolvedTopics,
      lookUp: () => this.#processing.lookUp(),
      affinity: () => this.#processing.affinity as Affinity,
      inRun: (work) => this.#processing.inRun(work),
      tell: (fact) => this.#tell(fact),
      failed: (error) => this.#recovery.failed(error),
      fail: (error) => this.#recovery.fail(error),
      connected: (connected) => this.#lost(connected),
      setPaused: (paused) => this.#setPaused(paused),
      setIsolated: (isolated) => this.#setIsolated(isolated),
      takeIdentity: (conditional) => this.#producer.init(conditional && this.#producer.identity !== undefined),
      giveUpIdentity: () => {
        this.#producer.successor()
        this.#producer = producerOf(this.#o)
      },
      loadGlobals: (run) => this.#globals.load(run, this.#processing.topics as ResolvedTopics),
      joinGroup: () => this.#group.take(this.#processing.topics as ResolvedTopics),
      standDown: () => this.#group.standDown(),
      closeRun: async () => {
        this.#recovery.restarts.over()
        return this.#closeRun()
      },
      openRun: (run) => this.#processing.openRun(run),
      activate: (what) => this.#processing.activate(what).then(() => this.#group.lookForNew(this.#processing)),
      processing: () => this.#ready && this.#processing.flow !== undefined,
      commitAll: () => this.#processing.commitAll(),
    }
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

  /** Nothing is to be let in. */
  get #stopped(): boolean {
    return this.#paused || this.#isolated
  }

  #admit(): void {
    this.#processing.flow?.setPaused(this.#stopped)
    if (this.#stopped) this.#schedules.stop()
    else if (this.#ready) this.#schedules.start(this.#runs.current)
  }

  #halt(): void {
    this.#ended = true
    this.#ready = false
    this.#role?.close()
    this.#processing.flow?.close()
    this.#commits.end()
    this.#laneReset.end()
    this.#schedules.stop()
    this.#snapshot()
  }

  /** A fact with the snapshot that goes with it: whoever asks at that moment is shown what is, not what was. */
  #tell(fact: EngineFact): void {
    this.#snapshot()
    this.#o.fact(fact)
  }

  #snapshot(): void {
    this.#reports.publish(this.#parts())
  }

  #parts(): EngineParts {
    return {
      flow: this.#processing.flow,
      topics: this.#processing.topics,
      committer: this.#ended ? undefined : this.#commits.committer,
      producer: this.#producer,
      group: this.#group,
      restarts: this.#recovery.restarts,
      changelogNext: this.#commits.changelogNext,
      ready: this.#ready,
    }
  }

  /** Topics by the number that records carry; those of the last run, once it is over. */
  get #originTopics(): readonly string[] {
    const { flow } = this.#processing
    if (flow !== undefined) this.#lastOrigins = flow.originTopics
    return this.#lastOrigins
  }

  #toLanes(message: ToLane): void {
    for (let lane = 0; lane < this.#o.settings.lanes; lane++) this.#o.send(lane, message, [])
  }

  async #show(): Promise<void> {
    for (;;) {
      await sleep(this.#o.timers, snapshotEveryMs)
      if (this.#ended) return
      this.#reports.tick(() => this.#parts())
    }
  }
}
