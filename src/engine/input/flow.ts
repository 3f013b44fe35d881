/** The way in: fetched partitions, their watermarks, and dispatch to the lanes. One instance a run of the engine. */
import { assert } from '../../base/assert.ts'
import { handedOverBytes } from '../../base/counters.ts'
import { usualSizes } from '../../base/sizes.ts'
import { type PartitionKey, partitionKey, type TopicPartition } from '../../base/ids.ts'
import type { Affinity } from '../../topology/affinity.ts'
import type { EmittedRecord } from '../../lanes/protocol.ts'
import { noHead, Watermarks } from '../../time/watermarks.ts'
import type { StartingPoint } from '../group/assignment.ts'
import { Alarm } from './alarm.ts'
import { Admission } from './admission/admission.ts'
import { Dispatcher, type Route } from './dispatcher.ts'
import type { EngineOptions } from '../engine-options.ts'
import type { Fetcher, FetcherEvents } from './fetcher.ts'
import { buffersOf, InputEnd, isExhausted, progressOf, recordsAtHand } from './input-end.ts'
import { inputFetcher } from './input-fetcher.ts'
import { evidenceTtlMs, KnownInput } from '../commit/known-input.ts'
import { InputSources } from './input-sources.ts'
import { firstWithheld, LogEnds } from './log-ends.ts'
import { LongWait, type Wait, waitOf } from './long-wait.ts'
import type { PartitionBuffer } from './partition-buffer.ts'
import { type FrozenPosition, Positions } from './positions.ts'
import type { Run } from '../run.ts'
import type { PartitionProgress } from '../snapshots.ts'
import { timingOf } from './source-timing.ts'
import type { Announcements } from './repartition/announcements.ts'
import { announcementsOf } from './repartition/announcing.ts'
import { isGroupAtEnd } from './repartition/group-end.ts'
import { neverWait } from '../../time/task-inputs.ts'
import { type Lead, leadOf } from './repartition/lead.ts'
import { SortedInput } from './repartition/sorted-input.ts'
import { taskNames } from './task-names.ts'
import type { ResolvedTopics } from '../group/topics.ts'
import type { ConsumerSnapshot, WatermarkSnapshot } from '../../view/view.ts'

export interface FlowHost extends Required<Pick<FetcherEvents, 'slackMs'>> {
  failed(error: unknown): void
  connected(connected: boolean, why: string | undefined): void
  /** Bytes of output that wait for the next transaction. */
  heldBytes(): number
  commitWanted(): void
  /** What could be dispatched was, or a lane has done some of it. */
  worked(): void
}

/** What lanes have handed to one another is looked at again after this long. */
const fullPauseMs = 2

/** Records dispatched before the event loop gets its turn again. */
const dispatchBudget = 2048

export class Flow {
  readonly #o: EngineOptions
  readonly #host: FlowHost
  readonly #watermarks: Watermarks
  readonly #admission: Admission
  readonly dispatcher: Dispatcher
  readonly known: KnownInput
  readonly #fetcher: Fetcher
  readonly #logEnds: LogEnds
  readonly #routes = new Map<PartitionKey, Route>()
  readonly #positions: Positions
  readonly #sources: InputSources
  #begun = false
  #closed = false
  #scheduled = false
  readonly #deadline: Alarm
  #stalled = false
  readonly #overloaded = new Set<number>()
  readonly #again: Alarm
  readonly #longWait: LongWait
  readonly #sorted: SortedInput
  readonly lead: Lead | undefined
  readonly #end: InputEnd

  constructor(options: EngineOptions, run: Run, affinity: Affinity, host: FlowHost) {
    this.#o = options
    this.#host = host
    const { settings, clock, timers, laneCounters, layout } = options
    this.#watermarks = new Watermarks({
      evidenceTtlMs: evidenceTtlMs(settings),
      maxTaskIdleMs: settings.maxTaskIdleMs,
      byTask: settings.split === 'repartition-topics',
    })
    this.known = new KnownInput(options, () => this.#routes.values(), this.#watermarks)
    this.#sources = new InputSources(options, run)
    this.#deadline = new Alarm(timers, () => this.wake())
    this.#again = new Alarm(timers, () => this.wake())
    this.#positions = new Positions(settings, this.#watermarks, this.#routes)
    const warn = (message: string): void => options.fact({ type: 'log', level: 'warn', message })
    this.#sorted = new SortedInput(settings, this.#watermarks, this.#routes, clock, warn)
    this.lead = leadOf(settings, warn)
    const longest = (): Wait | undefined => this.#watermarks.longestWait() ?? waitOf(this.lead)
    this.#longWait = new LongWait(options, longest, warn)
    const { commitIntervalMs, split, plan, sizes = usualSizes } = settings
    const levels = split === 'in-process' && plan.levels > 1
    this.#admission = new Admission({ laneCounters, layout, commitIntervalMs, levels }, clock.monotonic())
    const caughtUp = settings.guarantee === 'at-least-once' ? () => this.caughtUp : undefined
    this.dispatcher = new Dispatcher(
      this.#watermarks,
      affinity,
      this.#admission,
      {
        ...{ run, send: options.send, dispatchBytes: sizes.dispatchBytes, lead: this.lead, caughtUp },
        failed: (error) => host.failed(error),
      },
      settings.laneQueueBytes,
      options.counters,
      levels,
    )
    this.#end = new InputEnd(options, this.#watermarks, this.#routes, this.#positions, this.dispatcher)
    this.#fetcher = inputFetcher(options, {
      records: (buffer) => this.#arrived(buffer),
      starving: () => this.#starving(),
      waiting: () => recordsAtHand(this.#routes),
      slackMs: () => host.slackMs(),
      evidence: (buffer, lag, failed, askedAt) => this.#evidence(buffer, lag, failed, askedAt),
      connected: (connected, why) => host.connected(connected, why),
      // Behind the dispatch that may be under way: what restarts takes all of it back.
      failed: (error) => queueMicrotask(() => host.failed(error)),
    })
    this.#fetcher.pause('restoring')
    const told = (buffer: PartitionBuffer, askedAt: number): void => this.#evidence(buffer, buffer.lag, false, askedAt)
    this.#logEnds = new LogEnds(options, () => this.#fetcher.buffers, told).start()
  }

  /** Adds partitions, to be read from where the group left them. */
  assign(partitions: readonly StartingPoint[], topics: ResolvedTopics): void {
    const now = this.#o.clock.monotonic()
    this.#sources.name(topics)
    this.#topics = topics
    const taskOf = taskNames(this.#o.settings, topics)
    for (const start of partitions) {
      const { topic, partition, offset, maxTimestamp, watermark, logEnd, highWatermark } = start
      const key = partitionKey(topic, partition)
      if (this.#routes.has(key)) continue
      const source = this.#sources.sourceOf(topic, topics)
      assert(source >= 0, `${topic} is assigned, which no source reads`)
      const task = taskOf(source, partition)
      this.known.held.assigned(start, start.held)
      const waits = this.#o.settings.maxTaskIdleMs === neverWait ? undefined : task
      const buffer = this.#fetcher.add(start, offset, ...this.#sources.reading(source, topic, partition), waits)
      buffer.sawEnds(logEnd, highWatermark, now)
      if (!this.#begun) this.#fetcher.pause('restoring', start)
      const lag = logEnd < 0 ? undefined : this.#fetcher.lagOf(buffer)
      const handle = this.#watermarks.assign(start, timingOf(this.#o.settings, source), { task, lag, at: now })
      if (maxTimestamp > Number.NEGATIVE_INFINITY) this.#watermarks.restore(handle, maxTimestamp)
      this.#watermarks.restoreTask(handle, watermark)
      const sorted = this.#sorted.bufferFor(source, task, buffer, start.kept)
      const route = { handle, topic, partition, task, ...this.#sources.routing(source, topic), buffer, sorted }
      this.#routes.set(key, route)
      this.dispatcher.assign(route)
      this.#positions.assigned(start)
      if (sorted === undefined && buffer.hasHead)
        this.#watermarks.headArrived(handle, buffer.headTimestamp, buffer.headOffset, now)
    }
    this.#sorted.assigned(partitions, now)
    this.#announcements?.reassigned()
  }

  revoke(partitions: readonly TopicPartition[]): void {
    const now = this.#o.clock.monotonic()
    const revoked = partitions.flatMap((tp) => this.#routeOf(tp) ?? [])
    // What the commit tells of a task's time its lane knows, so that all that is due by then is done. And it is the time of
    // all partitions of the task: those that are left alone would be ahead of those that have gone.
    this.dispatcher.flush()
    for (const route of revoked) this.#positions.revoked(route)
    for (const route of revoked) {
      this.#sorted.revoked(route)
      this.#fetcher.remove(route)
      this.#watermarks.revoke(route, now)
      this.dispatcher.revoke(route.handle)
      this.#routes.delete(partitionKey(route.topic, route.partition))
    }
    this.#announcements?.reassigned()
    this.wake()
  }

  /** Stores are complete: fetch and dispatch. */
  begin(): void {
    assert(!this.#closed, 'input begins in a run that is over')
    this.#begun = true
    this.#fetcher.resume('restoring')
    this.#fetcher.start()
    this.#announcing()
    this.wake()
  }

  /** Of the topics between sub-topologies whose time is announced; undefined where there are none. */
  #announcements: Announcements | undefined
  #topics: ResolvedTopics | undefined
  #announcing(): void {
    if (this.#announcements) return
    this.#announcements = announcementsOf(this.#o, {
      routes: this.#routes,
      sorted: this.#sorted,
      known: this.known,
      lead: this.lead,
      topics: () => this.#topics as ResolvedTopics,
      wake: () => this.wake(),
      failed: (error) => this.#host.failed(error),
    })
    if (!this.#announcements) return
    this.#positions.announced = true
    this.#announcements.start()
  }

  setPaused(paused: boolean): void {
    if (!this.dispatcher.pause(paused)) return
    const now = this.#o.clock.monotonic()
    if (paused) {
      this.#watermarks.suspend('pause', now)
      this.#fetcher.pause('application')
    } else {
      this.#watermarks.resume('pause', now)
      this.#fetcher.resume('application')
      this.wake()
    }
  }

  consumed(lane: number, bytes: number): void {
    this.dispatcher.consumed(lane, bytes)
    if (this.#stalled) this.wake()
    else this.#host.worked()
  }

  get admission(): Pick<Admission, 'paces' | 'aimMs'> {
    return this.#admission
  }

  /** A lane is done with records of these keys. */
  finished(lane: number, keys: readonly number[]): void {
    this.#admission.finished(lane, keys)
    if (this.#stalled) this.wake()
  }

  /** No fetch has left anything at the broker, and the lanes have all but done what they were given. */
  get caughtUp(): boolean {
    if (!this.dispatcher.settled) return false
    for (const { buffer } of this.#routes.values()) if (buffer.backlog > 0) return false
    return true
  }

  /** A lane has too much before it already, or no longer. */
  overloaded(lane: number, overloaded: boolean): void {
    if (overloaded) this.#overloaded.add(lane)
    else this.#overloaded.delete(lane)
    this.wake()
  }

  wake(): void {
    if (this.#scheduled || this.#closed || !this.#begun) return
    this.#scheduled = true
    this.#o.timers.soon(() => {
      this.#scheduled = false
      if (!this.#closed) this.#dispatch()
    })
  }

  close(): void {
    this.#closed = true
    this.#announcements?.close()
    this.#longWait.close()
    this.#deadline.close()
    this.#again.close()
    this.#logEnds.close()
    void this.#fetcher.close()
  }

  /** Topics by the number that records carry. */
  get originTopics(): readonly string[] {
    return this.#sources.originTopics
  }

  get watermark(): number {
    return this.#watermarks.global()
  }

  /** The application had come this far at its last commit; tasks that have their own watermarks bring them along. */
  restoreWatermark(watermark: number): void {
    if (this.#watermarks.areByTask) return
    if (watermark > this.#watermarks.global()) this.#watermarks.restoreGlobal(watermark)
  }

  /** Dispatches the records of a scheduled source. */
  inject(source: number, records: readonly EmittedRecord[]): void {
    const subtopology = this.#o.settings.plan.sources[source]?.subtopology ?? 0
    for (const { key, value, timestamp } of records) {
      // Where no topic tells the time, the schedules do.
      if (this.#routes.size === 0) this.restoreWatermark(timestamp)
      this.dispatcher.inject(source, subtopology, key, value, timestamp)
    }
    this.dispatcher.flush()
  }

  // ── committing ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** True when a partition has moved past what is committed, or a barrier has records to close in. */
  moved(): boolean {
    return this.dispatcher.sinceBarrier > 0 || this.#positions.moved()
  }

  /** Everything dispatched so far is on its way; these are the offsets behind it. */
  freeze(): FrozenPosition[] {
    this.dispatcher.flush()
    this.dispatcher.sinceBarrier = 0
    this.lead?.froze()
    return this.#positions.freeze()
  }

  /** Where the last commit left the partition; undefined where it is not read here. */
  positionOf({ topic, partition }: TopicPartition): number | undefined {
    return this.#positions.of({ topic, partition })
  }

  committed(offsets: ReadonlyArray<TopicPartition & { readonly offset: number }>): void {
    this.#positions.committed(offsets)
    this.lead?.committed()
    this.#announcements?.hurry()
  }

  // ── the end of the input ────────────────────────────────────────────────────────────────────────────────────────

  /** All that is at hand waits for those who write to a topic between sub-topologies, which a commit may help. */
  get awaitsWriters(): boolean {
    return this.#watermarks.isWaitingForWriters
  }

  /** Whether the group has done all that lay in its input, be it read here, elsewhere or, between two owners, by nobody. */
  async isDrained(): Promise<boolean> {
    if (this.#announcements) return await this.#announcements.isDrained()
    return await isGroupAtEnd(this.#o, this.#topics as ResolvedTopics, this.#routes.size)
  }

  /** True when every partition is read and dispatched to the end that it has at this moment. */
  exhausted(): Promise<boolean> {
    return isExhausted(this.#o.broker, this.#routes)
  }

  /** Where open transactions of others hold input back, which is not the end of it. Ask behind a commit of one's own. */
  withheld(): ReturnType<typeof firstWithheld> {
    const partitions = [...this.#routes.values()].map(({ topic, partition }) => ({ topic, partition }))
    return firstWithheld(this.#o.broker, partitions)
  }

  /** There is no more input: partitions behind others hold the watermark back no longer. */
  closeInput(): ReturnType<InputEnd['close']> {
    return this.#end.close(this.#topics as ResolvedTopics)
  }

  // ── showing ─────────────────────────────────────────────────────────────────────────────────────────────────────

  watermarkSnapshot(): WatermarkSnapshot {
    const { clock } = this.#o
    return this.#longWait.shown(this.#watermarks.snapshot(clock.monotonic(), clock.now()), this.lead)
  }

  /** How many are assigned. */
  get partitions(): number {
    return this.#routes.size
  }

  /** Bytes of input that were fetched and not yet dispatched. */
  get bufferedBytes(): number {
    return this.#fetcher.bufferedBytes
  }

  progress(): PartitionProgress[] {
    return progressOf(this.#positions, this.#routes)
  }

  /** `paused` leaves the operator's pause out: the control thread knows of it first, and of its end. */
  assignment(ready: boolean): ConsumerSnapshot['assignment'] {
    const { bufferedRecordsPerPartition: capacity } = this.#o.settings
    return buffersOf(this.#routes, capacity, (route) => !ready || this.#fetcher.isHeld(route))
  }

  // ── dispatch ────────────────────────────────────────────────────────────────────────────────────────────────────

  #dispatch(): void {
    const now = this.#o.clock.monotonic()
    this.#watermarks.tick(now)
    const inDoubt = this.#watermarks.unproven(now)
    if (inDoubt.length > 0) void this.#logEnds.ask(inDoubt)
    // Outputs that wait for the transaction under way are memory too: no more input until it is through.
    const held = this.#host.heldBytes() > this.#o.settings.uncommittedMaxBytes
    if (held || this.lead?.wantsCommit) this.#host.commitWanted()
    const full = handedOverBytes(this.#o.laneCounters) > this.#o.settings.lanes * this.#o.settings.laneQueueBytes
    this.#admission.look(now)
    const blocked = held || full || this.#overloaded.size > 0 || this.dispatcher.refuses
    const more = !blocked && this.dispatcher.dispatch(dispatchBudget, now)
    const { refuses } = this.dispatcher
    // Nobody tells when lanes have done what they handed to one another.
    if (full || refuses) this.#again.set(now + (full ? fullPauseMs : this.#admission.pauseMs), now)
    this.#backpressure(blocked || refuses || !this.dispatcher.hasCredits, now)
    if (more) {
      this.wake()
      return
    }
    this.#deadline.set(this.#watermarks.nextDeadline(), now)
    this.#longWait.check()
    this.#announcements?.settle()
    if (this.#sorted.settle()) this.wake()
    this.#host.worked()
  }

  #backpressure(stalled: boolean, now: number): void {
    if (stalled === this.#stalled) return
    this.#stalled = stalled
    if (stalled) this.#watermarks.suspend('backpressure', now)
    else this.#watermarks.resume('backpressure', now)
    if (!stalled) this.wake()
  }

  #routeOf({ topic, partition }: TopicPartition): Route | undefined {
    return this.#routes.get(partitionKey(topic, partition))
  }

  #arrived(buffer: PartitionBuffer): void {
    const route = this.#routeOf(buffer)
    if (!route) return
    if (route.sorted !== undefined) {
      if (this.#sorted.arrived(route)) this.#announcements?.hurry()
      this.wake()
      return
    }
    if (buffer.headTimestamp === noHead) return
    this.#watermarks.headArrived(route.handle, buffer.headTimestamp, buffer.headOffset, this.#o.clock.monotonic())
    this.wake()
  }

  /** Heads wait for a record of a partition that has none, and for nothing else. */
  #starving(): boolean {
    if (this.dispatcher.paused || this.dispatcher.withheld || this.#stalled) return false
    if (this.#sorted.isReadingAgain) return true
    return this.#watermarks.holdMs(this.#o.clock.monotonic()) > 0 || this.#watermarks.longestWait() !== undefined
  }

  #evidence(buffer: PartitionBuffer, lag: number | undefined, failed: boolean, askedAt?: number): void {
    const route = this.#routeOf(buffer)
    if (!route) return
    const { isWithheld } = buffer
    this.#watermarks.evidence(route.handle, lag, failed, this.#o.clock.monotonic(), { askedAt, isWithheld })
    // What came may have been nothing but markers, behind which all is read again that was at hand before.
    if (route.sorted?.isReadingAgain) this.#sorted.arrived(route)
    this.#announcements?.settle()
    this.wake()
  }
}
