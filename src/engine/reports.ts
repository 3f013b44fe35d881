/** What the engine tells of itself: its last commits, its link to the broker, and a snapshot every now and then. */
import { BrokerLink } from './recovery/broker-link.ts'
import { commitHistogram, engineIndex, topicSlot } from '../base/counters.ts'
import { durationBounds, observe } from '../base/histograms.ts'
import type { CommitMachine, CommitReport } from './commit/machine.ts'
import type { Committer } from './commit/committer.ts'
import type { EngineOptions } from './engine-options.ts'
import type { Flow } from './input/flow.ts'
import type { GroupLink } from './group/group-link.ts'
import type { Producer, ToProduce } from './commit/producer.ts'
import type { EngineSnapshot } from './protocol.ts'
import type { Restarts } from './recovery/restarts.ts'
import { barrierSnapshot, offsetsSnapshot } from './snapshots.ts'
import { isInternal, type ResolvedTopics } from './group/topics.ts'
import { WallClockOffset } from '../time/watermark-report.ts'
import type { ConsumerSnapshot, WatermarkSnapshot } from '../view/view.ts'

const reportsKept = 50
export const snapshotEveryMs = 100
/** Every partition is shown, so a snapshot of many costs more, and comes less often. */
const pausePerPartitionMs = 2
const longestPauseMs = 1000
/** While nothing happens one looks like the other. */
const quietPauseMs = 500

interface KeptReport {
  readonly report: CommitReport
  readonly commitId: string
  readonly atMs: number
  readonly outcome: 'COMMITTED' | 'ABORTED'
}

/** The engine's parts at the moment of a snapshot; those of a run are undefined between runs. */
export interface EngineParts {
  readonly flow: Flow | undefined
  readonly topics: ResolvedTopics | undefined
  /** None once the engine has ended: whatever commit was under way then is so no more. */
  readonly committer: Committer | undefined
  readonly producer: Producer
  readonly group: GroupLink
  readonly restarts: Restarts
  readonly changelogNext: ReadonlyMap<string, number>
  readonly ready: boolean
}

/** What was buffered is given up with the run that had it; the partitions are still this process's own. */
function emptied(assignment: ConsumerSnapshot['assignment']): ConsumerSnapshot['assignment'] {
  const entries = Object.entries(assignment).map(([key, buffer]) => [
    key,
    { ...buffer, buffered: 0, sorted: 0, paused: true },
  ])
  return Object.fromEntries(entries) as ConsumerSnapshot['assignment']
}

/** The same watermarks, with nothing waiting: no hold stops a dispatch that is stopped anyway. */
function stopped(snapshot: WatermarkSnapshot | null | undefined): WatermarkSnapshot | null {
  if (!snapshot) return null
  const partitions = Object.entries(snapshot.partitions).map(
    ([key, { previewWatermarkMs: _, headHeldSinceMs: __, ...rest }]) => [key, { ...rest, alignmentHeld: false }],
  )
  return { ...snapshot, alignmentBinding: null, partitions: Object.fromEntries(partitions) }
}

export class Reports {
  readonly #o: EngineOptions
  /** Whoever reads a snapshot tells ages by the wall clock: what is under way goes along when that clock is set. */
  readonly #wall = new WallClockOffset()
  #kept: readonly KeptReport[] = []
  #last: EngineSnapshot | undefined
  #lastCommitMs: number | null = null
  /** Monotonic time before which no snapshot is made without a cause. */
  #nextPublish = Number.NEGATIVE_INFINITY
  /** The same while the application is quiet. */
  #nextQuiet = Number.NEGATIVE_INFINITY
  #happened = -1
  readonly #diskFull = new Map<number, string>()
  #diskFullTold: string | null = null
  readonly #noticed = new Set<string>()
  readonly link: BrokerLink
  /** Where what goes to a topic is counted; undefined where it is no output of the application. */
  readonly #sinkSlots = new Map<string, number | undefined>()
  /** Commits since the process began. */
  commits = 0

  constructor(options: EngineOptions) {
    this.#o = options
    const { clock, fact } = options
    this.link = new BrokerLink({ clock, log: (level, message) => fact({ type: 'log', level, message }) })
    const { deadLetterTopic } = options.settings
    // Shown from the start, also while there are none.
    if (deadLetterTopic) this.#sinkSlot(deadLetterTopic)
  }

  #sinkSlot(topic: string): number | undefined {
    const { settings, layout, counters } = this.#o
    if (!this.#sinkSlots.has(topic)) {
      const isOutput = layout.sinkTopics.includes(topic) || !isInternal(settings, topic)
      this.#sinkSlots.set(topic, isOutput ? topicSlot(layout, counters, 'sink', topic) : undefined)
    }
    return this.#sinkSlots.get(topic)
  }

  /** Counts what goes out, by topic. */
  written(batches: readonly ToProduce[]): void {
    const { counters } = this.#o
    for (const { topic, records, count } of batches) {
      const at = this.#sinkSlot(topic)
      if (at === undefined) continue
      counters[at] = (counters[at] as number) + count
      counters[at + 1] = (counters[at + 1] as number) + records.length
    }
  }

  /** The broker has committed; the stores have yet to follow. */
  tookEffect(): void {
    this.#lastCommitMs = this.#o.clock.now()
  }

  committed(report: CommitReport, tokenEpoch: number): void {
    this.commits++
    this.#o.counters[engineIndex.commitsCommitted] = this.commits
    this.#keep(report, tokenEpoch, 'COMMITTED')
    const { align, flush, offsets, endTransaction, apply } = report.durationsMs
    const total = align + flush + offsets + endTransaction + apply
    this.#timed([total, align, flush, offsets, endTransaction, apply])
  }

  /** Every commit counts: a list of the last ones would miss some of them. */
  #timed(inOrder: readonly number[]): void {
    const { counters, layout } = this.#o
    inOrder.forEach((ms, timing) => {
      observe(counters, commitHistogram(layout, timing), durationBounds, ms / 1000)
    })
  }

  aborted(machine: CommitMachine, tokenEpoch: number): void {
    const { counters, clock } = this.#o
    counters[engineIndex.commitsAborted] = (counters[engineIndex.commitsAborted] as number) + 1
    const report: CommitReport = {
      epoch: machine.epoch,
      trigger: machine.trigger ?? 'requested',
      startedAtMs: machine.startedAtMs ?? clock.monotonic(),
      durationsMs: { align: 0, flush: 0, offsets: 0, endTransaction: 0, apply: 0 },
    }
    this.#keep(report, tokenEpoch, 'ABORTED')
  }

  rebalanced(): void {
    const { counters } = this.#o
    counters[engineIndex.rebalances] = (counters[engineIndex.rebalances] as number) + 1
  }

  /** Stores of the lane wait for room on the disk (the sentence says which), or do no longer. */
  diskFull(lane: number, sentence: string | null): void {
    const before = this.#diskFull.get(lane)
    if (sentence === null) this.#diskFull.delete(lane)
    else this.#diskFull.set(lane, sentence)
    const { fact, settings } = this.#o
    if (settings.ha && this.#fullDisk !== this.#diskFullTold) {
      this.#diskFullTold = this.#fullDisk
      fact({ type: 'disk-full', sentence: this.#fullDisk })
    }
    if (sentence !== null && before === undefined) fact({ type: 'log', level: 'error', message: sentence })
    if (sentence === null && before !== undefined && this.#diskFull.size === 0)
      fact({ type: 'log', level: 'info', message: 'the disk has room for the stores again: the engine goes on' })
  }

  get #fullDisk(): string | null {
    return [...this.#diskFull.values()][0] ?? null
  }

  /** A warning of a lane. Where several lanes would tell the same, the first one does. */
  notice(message: string, about: string | undefined): void {
    if (about !== undefined && this.#noticed.has(about)) return
    if (about !== undefined) this.#noticed.add(about)
    this.#o.fact({ type: 'log', level: 'warn', message })
  }

  /** To be called every `snapshotEveryMs`: a sign of life, and a snapshot where it is time for one. */
  tick(parts: () => EngineParts): void {
    const { counters, clock, broker } = this.#o
    this.link.look(broker.connected, broker.fault)
    counters[engineIndex.heartbeats] = (counters[engineIndex.heartbeats] as number) + 1
    counters[engineIndex.lastTickMs] = clock.now()
    const now = clock.monotonic()
    if (now < this.#nextPublish) return
    const current = parts()
    if (now >= this.#nextQuiet || !this.#isQuiet(current)) this.publish(current)
  }

  /** Nothing was dispatched since the last snapshot, nothing waits, and no commit has begun or ended. */
  #isQuiet({ flow, committer, ready, restarts }: EngineParts): boolean {
    if (flow === undefined || committer === undefined || !ready || restarts.underWay) return false
    const happened = flow.dispatcher.total + this.commits
    const isQuiet = happened === this.#happened && committer.machine.phase === 'IDLE' && flow.caughtUp
    this.#happened = happened
    return isQuiet
  }

  publish(parts: EngineParts): void {
    const { counters, clock, fact, settings } = this.#o
    this.#wall.observe(clock.monotonic(), clock.now())
    counters[engineIndex.lastTickMs] = clock.now()
    const { flow, topics, changelogNext, restarts } = parts
    counters[engineIndex.bufferedBytes] = flow?.bufferedBytes ?? 0
    counters[engineIndex.queuedOutputBytes] = parts.committer?.heldBytes ?? 0
    counters[engineIndex.bufferedBytesLimit] = settings.bufferedMaxBytes
    // Between two runs what was reached still holds; nothing is fetched meanwhile.
    const before = flow === undefined && restarts.underWay ? this.#last : undefined
    const snapshot: EngineSnapshot = {
      watermarks: flow?.watermarkSnapshot() ?? stopped(before?.watermarks),
      offsets:
        flow && topics ? offsetsSnapshot(settings, topics, flow.progress(), changelogNext) : (before?.offsets ?? null),
      consumer: this.#consumer(parts),
      barriers: this.#barriers(parts),
      diskFull: this.#fullDisk,
      broker: this.link.state,
      brokers: this.#o.broker.nodes ?? [],
    }
    this.#last = snapshot
    fact({ type: 'snapshot', snapshot })
    const pauseMs = Math.min(longestPauseMs, (flow?.partitions ?? 0) * pausePerPartitionMs)
    const now = clock.monotonic()
    this.#nextPublish = now + Math.max(pauseMs, snapshotEveryMs) - snapshotEveryMs / 2
    this.#nextQuiet = now + Math.max(pauseMs, quietPauseMs) - snapshotEveryMs / 2
  }

  #keep(report: CommitReport, tokenEpoch: number, outcome: KeptReport['outcome']): void {
    const kept: KeptReport = {
      report,
      commitId: `${tokenEpoch}.${report.epoch}`,
      atMs: this.#o.clock.now(),
      outcome,
    }
    this.#kept = [kept, ...this.#kept].slice(0, reportsKept)
  }

  #consumer({ topics, group, flow, ready, restarts }: EngineParts): ConsumerSnapshot | null {
    if (!topics) return null
    const between = restarts.underWay ? emptied(this.#last?.consumer?.assignment ?? {}) : {}
    const { memberId, generationId, groupInstanceId } = group.member()
    return {
      groupId: this.#o.settings.applicationId,
      memberId,
      generationId,
      groupInstanceId,
      subscription: group.subscription(topics),
      lastCommitMs: this.#lastCommitMs,
      changes: group.changes,
      assignment: flow?.assignment(ready) ?? between,
    }
  }

  #barriers({ committer, producer, restarts, flow }: EngineParts): EngineSnapshot['barriers'] {
    const { settings, clock, laneCounters, layout, nodeNames } = this.#o
    return barrierSnapshot({
      settings,
      committer,
      lastEpoch: this.#last?.barriers.epoch ?? 0,
      producer,
      budget: restarts.budget,
      reports: this.#kept,
      laneCounters,
      layout,
      originTopics: flow?.originTopics ?? [],
      admission: flow?.admission,
      nodeName: (node) => nodeNames[node] ?? null,
      now: clock.monotonic(),
      epochMs: (instant) => this.#wall.epochMs(instant),
    })
  }
}
