/** What the engine tells of itself: its last commits, its link to the broker, and a snapshot every now and then. */
import { commitHistogram, engineIndex, sinkTopicSlot } from '../base/counters.ts'
import { durationBounds, observe } from '../base/histograms.ts'
import type { CommitMachine, CommitReport } from '../commit/machine.ts'
import type { Committer } from './committer.ts'
import type { EngineOptions } from './engine-core.ts'
import type { Flow } from './flow.ts'
import type { GroupLink } from './group-link.ts'
import type { Producer, ToProduce } from './producer.ts'
import type { EngineSnapshot } from './protocol.ts'
import type { Restarts } from './restarts.ts'
import { barrierSnapshot, offsetsSnapshot } from './snapshots.ts'
import type { ResolvedTopics } from './topics.ts'
import type { ConsumerSnapshot, WatermarkSnapshot } from './view.ts'

const reportsKept = 50
export const snapshotEveryMs = 100
/** Every partition is shown, so a snapshot of many costs more, and comes less often. */
const pausePerPartitionMs = 2
const longestPauseMs = 1000

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
  readonly committer: Committer | undefined
  readonly producer: Producer
  readonly group: GroupLink
  readonly restarts: Restarts
  readonly changelogNext: ReadonlyMap<string, number>
  readonly ready: boolean
}

/** What was buffered is given up with the run that had it; the partitions are still this process's own. */
function emptied(assignment: ConsumerSnapshot['assignment']): ConsumerSnapshot['assignment'] {
  const entries = Object.entries(assignment).map(([key, buffer]) => [key, { ...buffer, buffered: 0, paused: true }])
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
  /** Wall clock minus the machine's monotonic clock. */
  readonly #wallOffset: number
  #kept: readonly KeptReport[] = []
  #last: EngineSnapshot | undefined
  #lastCommitMs: number | null = null
  /** Monotonic time before which no snapshot is made without a cause. */
  #nextPublish = Number.NEGATIVE_INFINITY
  #connected = true
  #connectedSince: number
  readonly #sinkIndex: ReadonlyMap<string, number>
  /** Commits since the process began. */
  commits = 0

  constructor(options: EngineOptions) {
    this.#o = options
    this.#wallOffset = options.clock.now() - options.clock.monotonic()
    this.#connectedSince = options.clock.now()
    this.#sinkIndex = new Map(options.layout.sinkTopics.map((topic, i) => [topic, i]))
  }

  /** Counts what goes out, by topic; topics that a function chooses have no count. */
  written(batches: readonly ToProduce[]): void {
    const { counters, layout } = this.#o
    for (const { topic, records, count } of batches) {
      const index = this.#sinkIndex.get(topic)
      if (index === undefined) continue
      const at = sinkTopicSlot(layout, index)
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

  setConnected(connected: boolean): void {
    if (connected === this.#connected) return
    this.#connected = connected
    this.#connectedSince = this.#o.clock.now()
  }

  /** To be called every `snapshotEveryMs`: a sign of life, and a snapshot where it is time for one. */
  tick(parts: () => EngineParts): void {
    const { counters, clock } = this.#o
    counters[engineIndex.heartbeats] = (counters[engineIndex.heartbeats] as number) + 1
    counters[engineIndex.lastTickMs] = clock.now()
    if (clock.monotonic() >= this.#nextPublish) this.publish(parts())
  }

  publish(parts: EngineParts): void {
    const { counters, clock, fact, settings, broker } = this.#o
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
      broker: { connected: this.#connected && broker.connected, sinceMs: this.#connectedSince },
    }
    this.#last = snapshot
    fact({ type: 'snapshot', snapshot })
    const pauseMs = Math.min(longestPauseMs, (flow?.partitions ?? 0) * pausePerPartitionMs)
    this.#nextPublish = clock.monotonic() + Math.max(pauseMs, snapshotEveryMs) - snapshotEveryMs / 2
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
      assignment: flow?.assignment(ready) ?? between,
    }
  }

  #barriers({ committer, producer, restarts, flow }: EngineParts): EngineSnapshot['barriers'] {
    const { settings, clock, laneCounters, layout, nodeNames } = this.#o
    return barrierSnapshot({
      settings,
      committer,
      producer,
      budget: restarts.budget,
      reports: this.#kept,
      laneCounters,
      layout,
      originTopics: flow?.originTopics ?? [],
      nodeName: (node) => nodeNames[node] ?? null,
      now: clock.monotonic(),
      wallOffset: this.#wallOffset,
    })
  }
}
