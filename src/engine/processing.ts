/**
 * What a run of the engine has open: the topics as they were found, the tasks of the partitions it was given, and the
 * way in. Opens what comes with partitions, and commits before they go.
 */
import { assert } from '../base/assert.ts'
import type { TopicPartition } from '../base/ids.ts'
import { type Affinity, affinityOf, type TaskRef } from '../topology/affinity.ts'
import {
  allPartitions,
  changelogEndsOf,
  type GroupPosition,
  groupPosition,
  knownToGroup,
  notAmong,
  offsetsMissing,
  startingTasks,
  tasksFor,
  tasksOf,
} from './group/assignment.ts'
import { refuseMadeAnew, refuseOtherState, saidOf } from './group/made-anew.ts'
import { refuseMovedOffsets } from './group/moved-offsets.ts'
import type { Commits } from './commit/commits.ts'
import type { Committer } from './commit/committer.ts'
import type { EngineOptions } from './engine-options.ts'
import { Flow } from './input/flow.ts'
import type { GlobalTables } from './restore/global-tables.ts'
import { configureLanes, outputTopics } from './restore/lane-setup.ts'
import { type Restorer, tasksByLane } from './restore/restorer.ts'
import { type CheckedState, checkedState } from './restore/state-check.ts'
import { type Run, RunOver, type Runs } from './run.ts'
import type { Schedules } from './schedules.ts'
import type { Activation, RoleHost } from './standby-role.ts'
import { resolveAgain, type ResolvedTopics, resolveTopics } from './group/topics.ts'

export interface ProcessingParts {
  readonly runs: Runs
  readonly restorer: Restorer
  readonly globals: GlobalTables
  readonly schedules: Schedules
  readonly commits: Commits
}

export interface ProcessingHost {
  ended(): boolean
  /** Nothing is to be let in: the operator has paused, or the coordinator cannot be reached. */
  stopped(): boolean
  /** A restart in place is under way: it opens everything anew by itself. */
  restarting(): boolean
  /** Records are processed. */
  ready(): boolean
  /** Runs a step; an error in it restarts or fails the engine. */
  guard(step: () => Promise<void>): Promise<void>
  restoring(): void
  connected(connected: boolean, why: string | undefined): void
  failed(error: unknown): void
  /** All is open, and records go through. */
  begun(): void
}

export class Processing {
  readonly #o: EngineOptions
  readonly #parts: ProcessingParts
  readonly #host: ProcessingHost
  #topics: ResolvedTopics | undefined
  #affinity: Affinity | undefined
  #flow: Flow | undefined
  #tasks: TaskRef[] = []
  /** The first assignment of this run is through: what comes later is added to it. */
  #opened = false

  constructor(options: EngineOptions, parts: ProcessingParts, host: ProcessingHost) {
    this.#o = options
    this.#parts = parts
    this.#host = host
  }

  /** Of the run; undefined between runs. */
  get flow(): Flow | undefined {
    return this.#flow
  }

  get topics(): ResolvedTopics | undefined {
    return this.#topics
  }

  get affinity(): Affinity | undefined {
    return this.#affinity
  }

  /** Topics or partitions have come; what is assigned from now on may be of them. */
  resolved(topics: ResolvedTopics): void {
    // Before anything is read of it: where nothing was, whatever topic has the name is the right one.
    if (this.#flow !== undefined && this.#topics !== undefined) refuseMadeAnew(this.#o.settings, this.#topics, topics)
    this.#topics = topics
  }

  /** With high availability: topics and partitions may have come since the run was opened. */
  async lookUp(): Promise<ResolvedTopics> {
    const { settings, broker } = this.#o
    const before = this.#topics
    assert(before !== undefined, 'new topics are looked for before the topics are known')
    const topics = await this.inRun(resolveAgain(settings, broker, before))
    this.resolved(topics)
    return topics
  }

  /** Looks the topics up for a run that begins. */
  async openRun(run: Run): Promise<void> {
    await this.configure(run, await resolveTopics(this.#o.settings, this.#o.broker))
  }

  /** Takes the topics as they are now, and tells the lanes who runs which task. */
  async configure(run: Run, topics: ResolvedTopics): Promise<void> {
    const { settings } = this.#o
    this.#topics = topics
    this.#affinity = affinityOf(settings.plan, settings.lanes, settings.split, topics.changelogPartitions)
    // An answer may take long enough for the next run to begin: the lanes know that one by then.
    const outputs = await this.#in(run, outputTopics(this.#o, topics))
    configureLanes(this.#o, run, topics, this.#affinity, outputs)
  }

  /** What the group says of partitions: those that are new, and all. */
  async groupAssigned(added: readonly TopicPartition[], all: readonly TopicPartition[]): Promise<void> {
    const host = this.#host
    const run = this.#parts.runs.current
    if (host.ended() || host.restarting()) return
    if (this.#o.settings.ha) {
      if (host.ready()) await this.#takeNew(run)
      return
    }
    if (!this.#opened) await host.guard(() => this.assigned(run, all))
    else if (added.length > 0) await host.guard(() => this.assigned(run, added))
  }

  /** With high availability all partitions are the active's own, whatever the group says: takes in those that it lacks. */
  async #takeNew(run: Run): Promise<void> {
    assert(this.#topics !== undefined, 'records are processed before the topics are known')
    const known = Object.keys(this.#flow?.assignment(true) ?? {})
    const fresh = notAmong(known, allPartitions(this.#o.settings, this.#topics))
    if (fresh.length > 0) await this.#host.guard(() => this.assigned(run, fresh))
  }

  /** These partitions are this process's own: opens what goes with them and begins, or goes on. */
  async assigned(run: Run, partitions: readonly TopicPartition[]): Promise<void> {
    const { settings, broker } = this.#o
    const { restorer, commits } = this.#parts
    const over = (): boolean => run.isOver || this.#host.ended()
    const topics = this.#topics
    assert(topics !== undefined, 'partitions are assigned before the topics are known')
    if (!this.#opened) this.#found(await checkedState(settings, broker, topics))
    if (over()) return
    const affinity = this.#affinity
    assert(affinity !== undefined, 'partitions are assigned before the lanes are configured')
    const own = await groupPosition(settings, broker, partitions, topics)
    const position = await knownToGroup(settings, broker, topics, own)
    // An answer may have taken long enough for the next run to have begun: that one opens everything by itself.
    if (over()) return
    this.#judge(topics, position)
    const mine = tasksFor(settings, topics, affinity, partitions)
    const known = new Set(this.#tasks.map((t) => `${t.subtopology}_${t.partition}`))
    const fresh = mine.filter((t) => !known.has(`${t.subtopology}_${t.partition}`))
    const byLane = tasksByLane(fresh, affinity)
    const first = !this.#opened
    // What is restored for shows from now on, paused; nothing of it is fetched before `begin`.
    if (first) this.#openFlow(run, position, topics, affinity)
    // Partitions that come later are restored while the others go on: that is no state of the whole application.
    const restoring = (): void => (first ? this.#host.restoring() : undefined)
    const restored = await restorer.restore(run, byLane, topics, position, restoring, this.#refusal(position))
    if (over()) return
    commits.found(topics, position.ends, restored)
    // Of a topic that was deleted the newest commit may be gone: stores know of it.
    const nextEpoch = Math.max(position.newestTag?.tokenEpoch ?? 0, restorer.newestEpoch) + 1
    if (first) commits.tokenEpoch = nextEpoch
    if (first) await this.#firstAssignment(run, position, topics)
    if (over()) return
    const flow = this.#flow as Flow | undefined
    assert(flow !== undefined, 'stores are complete, and nothing is there to read')
    flow.restoreWatermark(position.watermark)
    const committer = commits.committer
    assert(committer !== undefined, 'stores are complete, and nobody is there to commit')
    // A task that began in the middle of a barrier would not know whether it belongs to it.
    await committer.hold(true)
    if (over()) return
    // A partition's commits keep their order when it comes from another process, which counted by itself.
    if (!first && !settings.ha) commits.tokenEpoch = Math.max(commits.tokenEpoch, nextEpoch)
    const starting = tasksByLane(startingTasks(settings, topics, fresh, position), affinity)
    await restorer.start(run, starting, settings.lanes, commits.beginning(flow.watermark))
    void committer.hold(false)
    if (over()) return
    this.#tasks.push(...fresh)
    this.#opened = true
    // Only now: what is fetched of them is dispatched at once, and the tasks have to be there.
    flow.assign(position.partitions, topics)
    flow.begin()
    this.#host.begun()
  }

  /** A run begins in place of another. It is tried again within its turn: to what is half open no revocation may come. */
  reassigned(run: Run, group: { readonly assignment: readonly TopicPartition[] }): Promise<void> {
    return this.#host.guard(() => this.assigned(run, group.assignment))
  }

  /** Partitions go to another process: everything done for them is committed before they do. */
  async revoking(partitions: readonly TopicPartition[]): Promise<void> {
    const { committer } = this.#parts.commits
    const { settings, send } = this.#o
    if (!this.#flow || !committer || !this.#topics || settings.ha) return
    this.#flow.revoke(partitions)
    await committer.commitNow('revoke')
    const gone = tasksOf(settings, this.#topics, partitions)
    const ids = new Set(gone.map((t) => `${t.subtopology}_${t.partition}`))
    this.#tasks = this.#tasks.filter((t) => !ids.has(`${t.subtopology}_${t.partition}`))
    assert(this.#affinity !== undefined, 'partitions are given away before the lanes are configured')
    this.#parts.commits.left(gone)
    for (const [lane, tasks] of tasksByLane(gone, this.#affinity)) {
      send(lane, { type: 'close', run: this.#parts.runs.current.number, tasks }, [])
    }
  }

  /** Whether what the group has committed is of the topics that are there now, and goes with the stores. */
  #judge(topics: ResolvedTopics, position: GroupPosition): void {
    const { settings, fact } = this.#o
    refuseOtherState(settings, topics, position)
    refuseMovedOffsets(settings, topics, position)
    for (const message of saidOf(settings, position)) fact({ type: 'log', level: 'warn', message })
  }

  /** What a start has found the stores to be. */
  #found(state: CheckedState): void {
    for (const message of state.warnings) this.#o.fact({ type: 'log', level: 'warn', message })
    this.#parts.commits.take(state)
  }

  /** With high availability: the stores are complete, and whoever ran before is fenced. */
  async activate({ position, tasks, changelogNext, tokenEpoch }: Activation): Promise<void> {
    const { runs, restorer, commits } = this.#parts
    const run = runs.current
    const topics = this.#topics
    const affinity = this.#affinity
    assert(topics !== undefined && affinity !== undefined, 'a pod is activated before its lanes are configured')
    this.#found(await this.#in(run, checkedState(this.#o.settings, this.#o.broker, topics)))
    this.#judge(topics, position)
    this.#openFlow(run, position, topics, affinity)
    const flow = this.#flow as Flow | undefined
    assert(flow !== undefined, 'a pod is activated without input')
    commits.found(topics, position.ends, changelogNext)
    // Tags never step back, also where the coordinator's topic was lost and its count began anew.
    commits.tokenEpoch = Math.max(tokenEpoch, position.newestTag?.tokenEpoch ?? 0)
    await this.#in(run, this.#firstAssignment(run, position, topics))
    const committer = commits.committer as Committer | undefined
    assert(committer !== undefined, 'a pod is activated without anybody to commit')
    await this.#in(run, restorer.start(run, tasks, this.#o.settings.lanes, commits.beginning(flow.watermark)))
    this.#tasks = [...tasks.values()].flat()
    this.#opened = true
    // Fetched already, dispatched only once a commit has proved that nobody else took the identity meanwhile.
    flow.dispatcher.withheld = true
    flow.begin()
    await this.#in(run, committer.commitNow('handoff'))
    flow.dispatcher.withheld = false
    this.#host.begun()
    flow.wake()
  }

  /** With high availability: lets nothing in any more and commits what is under way. */
  async commitAll(): ReturnType<RoleHost['commitAll']> {
    const { commits, schedules } = this.#parts
    const flow = this.#flow
    const { committer } = commits
    const topics = this.#topics
    assert(flow !== undefined && committer !== undefined, 'a pod hands over that does not run')
    assert(topics !== undefined, 'a pod hands over that knows no topics')
    flow.setPaused(true)
    schedules.stop()
    await this.inRun(committer.commitNow('handoff'))
    const changelogEnds = changelogEndsOf(topics, commits.changelogNext, flow.progress())
    return { commitId: `${commits.tokenEpoch}.${committer.machine.epoch - 1}`, changelogEnds }
  }

  /** The work's result, unless the run or the engine ends first: then it throws `RunOver`. */
  inRun<T>(work: Promise<T>): Promise<T> {
    return this.#in(this.#parts.runs.current, work)
  }

  async #in<T>(run: Run, work: Promise<T>): Promise<T> {
    const result = await run.during(work)
    if (this.#host.ended()) throw new RunOver('the engine has ended')
    return result
  }

  /** The run is over: what it had fetched is given up. */
  close(): void {
    this.#flow?.close()
    this.#flow = undefined
    this.#opened = false
    this.#tasks = []
  }

  #openFlow(run: Run, position: GroupPosition, topics: ResolvedTopics, affinity: Affinity): void {
    const { commits } = this.#parts
    // A start that a broker out of reach interrupted is made again from its beginning.
    this.#flow?.close()
    this.#flow = new Flow(this.#o, run, affinity, {
      failed: (error) => this.#host.failed(error),
      connected: (connected, why) => this.#host.connected(connected, why),
      heldBytes: () => commits.committer?.heldBytes ?? 0,
      worked: () => commits.worked(),
      commitWanted: () => commits.committer?.trigger('bytes'),
      slackMs: () => commits.slackMs,
    })
    this.#flow.setPaused(this.#host.stopped())
    this.#flow.restoreWatermark(position.watermark)
    this.#flow.assign(position.partitions, topics)
  }

  /**
   * What a changelog holds was committed together with offsets: without them it is refused. Not so where outputs come
   * before their offsets.
   */
  #refusal({ newestTag, partitions }: GroupPosition): (() => void) | undefined {
    const { settings } = this.#o
    if (newestTag || partitions.length === 0 || settings.guarantee !== 'exactly-once') return undefined
    return () => {
      throw offsetsMissing(settings)
    }
  }

  async #firstAssignment(run: Run, { newestTag }: GroupPosition, topics: ResolvedTopics): Promise<void> {
    const { commits, globals, schedules } = this.#parts
    commits.open(run, newestTag, topics)
    await globals.load(run, topics)
    await schedules.restore(() => run.isOver || this.#host.ended())
  }
}
