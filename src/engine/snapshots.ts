/** The engine thread's own figures, made into the snapshots that the control thread shows. */
import { type CounterLayout, laneIndex } from '../base/counters.ts'
import { type PartitionKey, partitionKey } from '../base/ids.ts'
import type { CommitReport } from '../commit/machine.ts'
import type { Committer } from './committer.ts'
import type { Producer } from './producer.ts'
import type { RestartBudget } from './restart-budget.ts'
import type { EngineSettings } from './settings.ts'
import type { ResolvedTopics } from './topics.ts'
import { changelogOf } from './topics.ts'
import type { BarrierSnapshot, OffsetsSnapshot } from './view.ts'

export interface PartitionProgress {
  readonly topic: string
  readonly partition: number
  readonly committedOffset: number
  readonly logEndOffset: number
}

export function offsetsSnapshot(
  settings: EngineSettings,
  topics: ResolvedTopics,
  progress: readonly PartitionProgress[],
  changelogNext: ReadonlyMap<string, number>,
): OffsetsSnapshot {
  const byTopic = new Map<string, PartitionProgress[]>()
  for (const p of progress) {
    const list = byTopic.get(p.topic)
    if (list) list.push(p)
    else byTopic.set(p.topic, [p])
  }
  const sources = [...byTopic]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([topic, list]) => ({
      topic,
      partitions: list
        .sort((a, b) => a.partition - b.partition)
        .map(({ partition, committedOffset, logEndOffset }) => ({
          partition,
          committedOffset,
          logEndOffset: Math.max(logEndOffset, committedOffset),
        })),
    }))
  const changelogs = settings.plan.stores.map((store) => ({
    topic: changelogOf(settings, store),
    store: store.name,
    partitions: Array.from({ length: topics.changelogs.get(store.name)?.partitions ?? 0 }, (_, partition) => ({
      partition,
      committedOffset: changelogNext.get(`${store.name}/${partition}`) ?? 0,
    })).filter((p) => changelogNext.has(`${store.name}/${p.partition}`) || settings.split === 'in-process'),
  }))
  return { sources, changelogs }
}

export interface BarrierFacts {
  readonly settings: EngineSettings
  readonly committer: Committer | undefined
  readonly producer: Producer
  readonly budget: RestartBudget
  readonly reports: ReadonlyArray<{
    report: CommitReport
    commitId: string
    atMs: number
    outcome: 'COMMITTED' | 'ABORTED'
  }>
  readonly laneCounters: readonly Float64Array[]
  readonly layout: CounterLayout
  /** Topics by the number that records carry. */
  readonly originTopics: readonly string[]
  readonly nodeName: (node: number) => string | null
  readonly now: number
  /** Wall clock minus the machine's monotonic clock. */
  readonly wallOffset: number
}

export function barrierSnapshot(facts: BarrierFacts): BarrierSnapshot {
  const { committer, producer, budget, now, wallOffset } = facts
  const machine = committer?.machine
  const restarts = budget.snapshot(now)
  const last = facts.reports.map(({ report, commitId, atMs, outcome }) => ({
    commitId,
    outcome,
    atMs,
    durationsMs: report.durationsMs,
  }))
  const waiting = new Set(machine?.outstandingLanes ?? [])
  return {
    phase: machine?.phase ?? 'IDLE',
    commitId: machine && machine.startedAtMs !== null ? (committer?.commitId ?? null) : null,
    epoch: machine?.epoch ?? 0,
    trigger: machine && machine.startedAtMs !== null ? machine.trigger : null,
    startedAtMs: machine && machine.startedAtMs !== null ? Math.round(machine.startedAtMs + wallOffset) : null,
    phaseSinceMs: Math.round((machine?.phaseSinceMs ?? now) + wallOffset),
    queued: machine?.queued ?? false,
    outstandingLanes: [...waiting].sort((a, b) => a - b).map((lane) => `lane-${lane}`),
    lanes: facts.laneCounters.map((block, lane) => laneFacts(facts, block, lane, !waiting.has(lane))),
    transaction: producer.transaction,
    restarts,
    last,
  }
}

type RecordPlace = NonNullable<BarrierSnapshot['lanes'][number]['at']>

/** The record that a lane is at; null where it has none. */
function recordAt(block: Float64Array, originTopics: readonly string[]): RecordPlace | null {
  const topic = originTopics[block[laneIndex.currentTopic] as number]
  const partition = block[laneIndex.currentPartition] as number
  const offset = block[laneIndex.currentOffset] as number
  const known = topic !== undefined && offset >= 0 && (block[laneIndex.recordsReceived] as number) > 0
  return known ? { topic, partition, offset } : null
}

/** The record at which a lane stands still: in a function of the application, or with a promise of one pending. */
export function stuckRecord(
  laneCounters: readonly Float64Array[],
  originTopics: readonly string[],
): (RecordPlace & { readonly lane: number }) | undefined {
  for (const [lane, block] of laneCounters.entries()) {
    const busy = (block[laneIndex.inFlightAsync] as number) > 0 || (block[laneIndex.currentNode] as number) >= 0
    const place = busy ? recordAt(block, originTopics) : null
    if (place !== null) return { lane, ...place }
  }
  return undefined
}

function laneFacts(
  facts: BarrierFacts,
  block: Float64Array,
  lane: number,
  acked: boolean,
): BarrierSnapshot['lanes'][number] {
  return {
    lane: `lane-${lane}`,
    acked,
    queuedRecords: Math.max(0, block[laneIndex.queuedRecords] as number),
    lastProgressMs: block[laneIndex.lastProgressMs] as number,
    at: recordAt(block, facts.originTopics),
    node: facts.nodeName(block[laneIndex.currentNode] as number),
  }
}

export function keyOf(p: { topic: string; partition: number }): PartitionKey {
  return partitionKey(p.topic, p.partition)
}
