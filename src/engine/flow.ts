/** The way in: fetched partitions, their watermarks, and dispatch to the lanes. One instance a run of the engine. */
import { engineIndex, handedOverBytes, pollRecordsHistogram, pollSecondsHistogram } from '../base/counters.ts'
import { durationBounds, observe, pollBounds } from '../base/histograms.ts'
import { type PartitionKey, partitionKey, type TopicPartition } from '../base/ids.ts'
import type { Affinity } from '../lanes/affinity.ts'
import type { EmittedRecord } from '../lanes/protocol.ts'
import { noHead, Watermarks } from '../time/watermarks.ts'
import type { RecordCursor } from '../wire/record-batch.ts'
import type { StartingPoint } from './assignment.ts'
import { Announcements, isAnnounced } from './announcements.ts'
import { Dispatcher, type Route } from './dispatcher.ts'
import type { EngineOptions } from './engine-core.ts'
import { Fetcher } from './fetcher.ts'
import { LongWait } from './long-wait.ts'
import { type FrozenPosition, Positions } from './positions.ts'
import type { PartitionProgress } from './snapshots.ts'
import { timingOf } from './source-timing.ts'
import { taskNames } from './task-names.ts'
import type { ResolvedTopics } from './topics.ts'
import type { ConsumerSnapshot, WatermarkSnapshot } from './view.ts'

export interface FlowHost {
  run(): number
  failed(error: unknown): void
  connected(connected: boolean): void
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
  readonly dispatcher: Dispatcher
  readonly #fetcher: Fetcher
  readonly #routes = new Map<PartitionKey, Route>()
  readonly #positions: Positions
  readonly #originTopics: string[] = []
  #paused = false
  #begun = false
  #closed = false
  #scheduled = false
  #deadline: (() => void) | undefined
  #deadlineAt = Number.POSITIVE_INFINITY
  #stalled = false
  readonly #crowded = new Set<number>()
  #again: (() => void) | undefined
  readonly #longWait: LongWait

  constructor(options: EngineOptions, affinity: Affinity, host: FlowHost) {
    this.#o = options
    this.#host = host
    const { settings, broker, clock, timers } = options
    // An empty partition is proved empty once a fetch, which may wait as long as this.
    this.#watermarks = new Watermarks({
      evidenceTtlMs: settings.fetchMaxWaitMs + 2500,
      maxTaskIdleMs: settings.maxTaskIdleMs,
    })
    this.#positions = new Positions(settings, this.#watermarks, this.#routes)
    this.#longWait = new LongWait(
      options,
      () => this.#watermarks.longestWait(),
      (message) => options.fact({ type: 'log', level: 'warn', message }),
    )
    this.dispatcher = new Dispatcher(
      this.#watermarks,
      affinity,
      { run: () => host.run(), send: options.send },
      settings.laneQueueBytes,
      options.layout,
      options.counters,
    )
    this.#fetcher = new Fetcher(
      {
        broker,
        clock,
        timers,
        isolation: 'read_committed',
        bufferCapacity: settings.bufferedRecordsPerPartition,
        maxPollRecords: settings.maxPollRecords,
        maxWaitMs: settings.fetchMaxWaitMs,
        maxBytes: settings.fetchMaxBytes,
        maxPartitionBytes: settings.partitionFetchMaxBytes,
        maxBufferedBytes: settings.bufferedMaxBytes,
        outOfRange: settings.sourceReset,
      },
      {
        records: (buffer) => this.#arrived(buffer.topic, buffer.partition),
        polled: (_, records) => this.#polled(records),
        buffered: (bytes) => this.#buffered(bytes),
        starving: () => this.#starving(),
        requested: (ms) => observe(options.counters, pollSecondsHistogram(options.layout), durationBounds, ms / 1000),
        evidence: (buffer, lag, failed) => this.#evidence(buffer.topic, buffer.partition, lag, failed),
        connected: (connected) => host.connected(connected),
        warning: (message) => options.fact({ type: 'log', level: 'warn', message }),
        failed: (error) => host.failed(error),
      },
    )
    this.#fetcher.pause('restoring')
  }

  /** Adds partitions, to be read from where the group left them. */
  assign(partitions: readonly StartingPoint[], topics: ResolvedTopics): void {
    const now = this.#o.clock.monotonic()
    this.#nameOrigins(topics)
    this.#topics = topics
    const taskOf = taskNames(this.#o.settings, topics)
    for (const start of partitions) {
      const { topic, partition, offset, maxTimestamp, logEnd } = start
      const key = partitionKey(topic, partition)
      if (this.#routes.has(key)) continue
      const source = this.#sourceOf(topic, topics)
      const buffer = this.#fetcher.add(start, offset, this.#extractor(source, topic, partition))
      buffer.logEndOffset = logEnd
      if (!this.#begun) this.#fetcher.pause('restoring', start)
      const lag = logEnd < 0 ? undefined : buffer.lag
      const input = { task: taskOf(source, partition), lag, at: now }
      const handle = this.#watermarks.assign(start, timingOf(this.#o.settings, source), input)
      if (maxTimestamp > Number.NEGATIVE_INFINITY) this.#watermarks.restore(handle, maxTimestamp)
      const route: Route = {
        handle,
        topic,
        partition,
        source,
        subtopology: this.#o.settings.plan.sources[source]?.subtopology ?? 0,
        originTopic: this.#originTopics.indexOf(topic),
        counter: this.#o.layout.sourceTopics.indexOf(topic),
        buffer,
      }
      this.#routes.set(key, route)
      this.dispatcher.routes[handle] = route
      this.#positions.assigned(start)
      if (buffer.hasHead) this.#watermarks.headArrived(handle, buffer.headTimestamp, buffer.headOffset, now)
    }
  }

  /** Places in the list stay what they are: records under way name their topic by them. */
  #nameOrigins(topics: ResolvedTopics): void {
    const known = this.#originTopics
    const first = known.length === 0
    const fresh = [...new Set(topics.bySource.flat())].filter((topic) => !known.includes(topic))
    known.push(...fresh)
    if (first || fresh.length === 0) return
    const { send, settings } = this.#o
    for (let lane = 0; lane < settings.lanes; lane++) {
      send(lane, { type: 'origins', run: this.#host.run(), originTopics: [...known] }, [])
    }
  }

  revoke(partitions: readonly TopicPartition[]): void {
    const now = this.#o.clock.monotonic()
    for (const tp of partitions) {
      const key = partitionKey(tp.topic, tp.partition)
      const route = this.#routes.get(key)
      if (!route) continue
      this.#positions.revoked(route)
      this.#fetcher.remove(tp)
      this.#watermarks.revoke(tp, now)
      this.dispatcher.routes[route.handle] = undefined
      this.#routes.delete(key)
    }
    // What waited for one of them goes on.
    this.wake()
  }

  /** Stores are complete: fetch and dispatch. */
  begin(): void {
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
    const { settings, broker, timers } = this.#o
    const { plan, split, applicationId: groupId, commitIntervalMs } = settings
    if (this.#announcements || split !== 'repartition-topics') return
    if (!plan.sources.some((source) => isAnnounced(plan, source))) return
    const routeOf = ({ topic, partition }: TopicPartition) => this.#routes.get(partitionKey(topic, partition))
    this.#announcements = new Announcements(
      {
        broker,
        timers,
        groupId,
        plan,
        everyMs: Math.max(50, commitIntervalMs),
        disorderMs: ({ index }) => timingOf(this.#o.settings, index).maxOutOfOrdernessMs,
      },
      {
        partitions: () => [...this.#routes.values()].filter(({ source }) => isAnnounced(plan, plan.sources[source])),
        topics: () => this.#topics as ResolvedTopics,
        reached: (tp, offset) => (routeOf(tp)?.buffer.nextOffset ?? -1) >= offset,
        announce: (tp, watermark) => {
          const route = routeOf(tp)
          if (!route) return
          this.#watermarks.announce(route.handle, watermark)
          this.wake()
        },
        failed: (error) => this.#host.failed(error),
      },
    )
    this.#positions.announced = true
    this.#announcements.start()
  }

  setPaused(paused: boolean): void {
    if (paused === this.#paused) return
    this.#paused = paused
    this.dispatcher.paused = paused
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

  /** All input that is known to lie at the broker was dispatched, and the lanes have all but done it. */
  get caughtUp(): boolean {
    if (!this.dispatcher.settled) return false
    for (const { buffer } of this.#routes.values()) if (buffer.lag > 0) return false
    return true
  }

  /** A lane has too much before it already, or no longer. */
  crowded(lane: number, crowded: boolean): void {
    if (crowded) this.#crowded.add(lane)
    else this.#crowded.delete(lane)
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
    this.#deadline?.()
    this.#again?.()
    void this.#fetcher.close()
  }

  /** Topics by the number that records carry. */
  get originTopics(): readonly string[] {
    return this.#originTopics
  }

  get watermark(): number {
    return this.#watermarks.global()
  }

  restoreWatermark(watermark: number): void {
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
    return this.dispatcher.sinceMark > 0 || this.#positions.moved()
  }

  /** Everything dispatched so far is on its way; these are the offsets behind it. */
  freeze(): FrozenPosition[] {
    this.dispatcher.flush()
    this.dispatcher.sinceMark = 0
    return this.#positions.freeze()
  }

  /** Where the last commit left the partition; undefined where it is not read here. */
  positionOf({ topic, partition }: TopicPartition): number | undefined {
    return this.#positions.of({ topic, partition })
  }

  committed(offsets: ReadonlyArray<TopicPartition & { readonly offset: number }>): void {
    this.#positions.committed(offsets)
  }

  // ── the end of the input ────────────────────────────────────────────────────────────────────────────────────────

  /** True when every partition is read and dispatched to the end that it has at this moment. */
  async exhausted(): Promise<boolean> {
    const all = [...this.#routes.values()]
    if (all.length === 0) return true
    // What is known to be left need not be asked for.
    if (all.some(({ buffer }) => buffer.hasHead || buffer.lag > 0)) return false
    const ends = await this.#o.broker.listOffsets(
      all.map(({ topic, partition }) => ({ topic, partition })),
      'stable',
    )
    for (const { topic, partition, offset } of ends) {
      const buffer = this.#routes.get(partitionKey(topic, partition))?.buffer
      if (buffer && (buffer.position < offset || buffer.hasHead)) return false
    }
    return true
  }

  /**
   * There is no more input: partitions that lie behind others do not hold the watermark back any longer. True when it
   * rose.
   */
  closeInput(): boolean {
    let highest = Number.NEGATIVE_INFINITY
    for (const { handle, source } of this.#routes.values()) {
      const { maxOutOfOrdernessMs } = timingOf(this.#o.settings, source)
      highest = Math.max(highest, this.#watermarks.maxTs(handle) - maxOutOfOrdernessMs)
    }
    if (highest <= this.#watermarks.global()) return false
    this.#watermarks.restoreGlobal(highest)
    this.dispatcher.flush()
    return true
  }

  // ── showing ─────────────────────────────────────────────────────────────────────────────────────────────────────

  watermarkSnapshot(): WatermarkSnapshot {
    return this.#watermarks.snapshot(this.#o.clock.monotonic(), this.#o.clock.now())
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
    return [...this.#routes.values()].map(({ topic, partition, buffer }) => ({
      topic,
      partition,
      committedOffset: this.#positions.of({ topic, partition }) ?? 0,
      logEndOffset: buffer.logEndOffset,
    }))
  }

  /** `paused` leaves the operator's pause out: the control thread knows of it first, and of its end. */
  assignment(ready: boolean): ConsumerSnapshot['assignment'] {
    const { bufferedRecordsPerPartition: bufferCapacity } = this.#o.settings
    const entries = [...this.#routes].map(([key, route]) => {
      const paused = !ready || this.#fetcher.isHeld(route)
      return [key, { buffered: route.buffer.buffered, bufferCapacity, paused }] as const
    })
    return Object.fromEntries(entries)
  }

  // ── dispatch ────────────────────────────────────────────────────────────────────────────────────────────────────

  #dispatch(): void {
    const now = this.#o.clock.monotonic()
    this.#watermarks.tick(now)
    // Outputs that wait for the transaction under way are memory too: no more input until it is through.
    const held = this.#host.heldBytes() > this.#o.settings.uncommittedMaxBytes
    if (held) this.#host.commitWanted()
    const full = handedOverBytes(this.#o.laneCounters) > this.#o.settings.lanes * this.#o.settings.laneQueueBytes
    if (full) this.#lookAgain()
    const blocked = held || full || this.#crowded.size > 0
    const more = !blocked && this.dispatcher.dispatch(dispatchBudget, now)
    this.#backpressure(blocked || !this.dispatcher.hasCredits, now)
    if (more) {
      this.wake()
      return
    }
    this.#armDeadline(now)
    this.#longWait.check()
    this.#announcements?.settle()
    this.#host.worked()
  }

  /** Nobody tells when lanes have done what they handed to one another. */
  #lookAgain(): void {
    this.#again ??= this.#o.timers.after(fullPauseMs, () => {
      this.#again = undefined
      this.wake()
    })
  }

  #backpressure(stalled: boolean, now: number): void {
    if (stalled === this.#stalled) return
    this.#stalled = stalled
    if (stalled) this.#watermarks.suspend('backpressure', now)
    else this.#watermarks.resume('backpressure', now)
    if (!stalled) this.wake()
  }

  #armDeadline(now: number): void {
    const next = this.#watermarks.nextDeadline()
    if (next === this.#deadlineAt) return
    this.#deadline?.()
    this.#deadline = undefined
    this.#deadlineAt = next
    if (next === Number.POSITIVE_INFINITY) return
    this.#deadline = this.#o.timers.after(Math.max(0, Math.ceil(next - now)), () => {
      this.#deadlineAt = Number.POSITIVE_INFINITY
      this.wake()
    })
  }

  #arrived(topic: string, partition: number): void {
    const route = this.#routes.get(partitionKey(topic, partition))
    if (!route) return
    const { buffer, handle } = route
    if (buffer.headTimestamp === noHead) return
    this.#watermarks.headArrived(handle, buffer.headTimestamp, buffer.headOffset, this.#o.clock.monotonic())
    this.wake()
  }

  /** Heads wait for a record of a partition that has none, and for nothing else. */
  #starving(): boolean {
    if (this.#paused || this.#stalled) return false
    return this.#watermarks.holdMs(this.#o.clock.monotonic()) > 0 || this.#watermarks.longestWait() !== undefined
  }

  #buffered(bytes: number): void {
    const { counters } = this.#o
    counters[engineIndex.bufferedBytes] = bytes
    if (bytes > (counters[engineIndex.bufferedBytesPeak] as number)) counters[engineIndex.bufferedBytesPeak] = bytes
  }

  #polled(records: number): void {
    const { counters, layout } = this.#o
    counters[engineIndex.polls] = (counters[engineIndex.polls] as number) + 1
    counters[engineIndex.pollRecords] = (counters[engineIndex.pollRecords] as number) + records
    observe(counters, pollRecordsHistogram(layout), pollBounds, records)
  }

  #evidence(topic: string, partition: number, lag: number, failed: boolean): void {
    const route = this.#routes.get(partitionKey(topic, partition))
    if (!route) return
    this.#watermarks.evidence(route.handle, lag, failed, this.#o.clock.monotonic())
    this.#announcements?.settle()
    this.wake()
  }

  #sourceOf(topic: string, topics: ResolvedTopics): number {
    return topics.bySource.findIndex(
      (names, index) => names.includes(topic) && this.#o.settings.plan.sources[index]?.kind !== 'global',
    )
  }

  #extractor(source: number, topic: string, partition: number): ((cursor: RecordCursor) => number) | undefined {
    const extract = this.#o.extractors?.get(source)
    return extract && ((cursor) => extract(cursor, topic, partition))
  }
}
