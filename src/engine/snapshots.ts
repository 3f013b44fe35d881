/** The engine thread's own figures, made into the snapshots that the control thread shows. */
import { type CounterLayout, functionSlot, type functionSlots, laneDoings, laneIndex } from '../base/counters.ts'
import { type PartitionKey, partitionKey } from '../base/ids.ts'
import type { CommitReport } from './commit/machine.ts'
import type { Committer } from './commit/committer.ts'
import type { Producer } from './commit/producer.ts'
import type { RestartBudget } from './recovery/restart-budget.ts'
import type { EngineSettings } from './settings.ts'
import type { ResolvedTopics } from './group/topics.ts'
import { changelogOf } from './group/topics.ts'
import type { Admission } from './input/admission/admission.ts'
import type { BarrierSnapshot, FunctionCalls, OffsetsSnapshot } from '../view/view.ts'

export interface PartitionProgress {
  readonly topic: string
  readonly partition: number
  readonly committedOffset: number
  /** End of the log, with what open transactions hold back. */
  readonly logEndOffset: number
  /** Of that, what lies behind the first open transaction and cannot be read before it is decided. */
  readonly withheld: number
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
        .map(({ partition, committedOffset, logEndOffset, withheld }) => ({
          partition,
          committedOffset,
          logEndOffset: Math.max(logEndOffset, committedOffset),
          withheld,
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
  /** Shown where there is none. */
  readonly lastEpoch: number
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
  /** Undefined between runs. */
  readonly admission: Pick<Admission, 'paces' | 'aimMs'> | undefined
  readonly nodeName: (node: number) => string | null
  readonly now: number
  /** What the wall clock shows for a monotonic instant. */
  readonly epochMs: (instant: number) => number
}

export function barrierSnapshot(facts: BarrierFacts): BarrierSnapshot {
  const { committer, budget, now, epochMs } = facts
  const machine = committer?.machine
  const restarts = budget.snapshot(now)
  const last = facts.reports.map(({ report, commitId, atMs, outcome }) => ({
    commitId,
    outcome,
    atMs,
    durationsMs: report.durationsMs,
  }))
  const waiting = new Set(machine?.outstandingLanes ?? [])
  const paces = facts.admission?.paces() ?? []
  return {
    phase: machine?.phase ?? 'IDLE',
    commitId: machine && machine.startedAtMs !== null ? (committer?.commitId ?? null) : null,
    epoch: machine?.epoch ?? facts.lastEpoch,
    trigger: machine && machine.startedAtMs !== null ? machine.trigger : null,
    startedAtMs: machine && machine.startedAtMs !== null ? epochMs(machine.startedAtMs) : null,
    phaseSinceMs: epochMs(machine?.phaseSinceMs ?? now),
    queued: machine?.queued ?? false,
    outstandingLanes: [...waiting].sort((a, b) => a - b).map((lane) => `lane-${lane}`),
    originTopics: facts.originTopics,
    lanes: facts.laneCounters.map((block, lane) => ({
      ...laneFacts(facts, block, lane, !waiting.has(lane)),
      ...(paces[lane] && { pace: paces[lane] }),
    })),
    aimMs: facts.admission?.aimMs ?? null,
    functions: functionCalls(facts),
    transaction: transactionSnapshot(facts),
    restarts,
    last,
  }
}

function transactionSnapshot({ producer, epochMs }: BarrierFacts): BarrierSnapshot['transaction'] {
  const { transaction } = producer
  if (transaction === null) return null
  const { openSince, ...shown } = transaction
  return { ...shown, openSinceMs: openSince === null ? null : epochMs(openSince) }
}

export type RecordPlace = NonNullable<BarrierSnapshot['lanes'][number]['at']>

/** The record that a lane is at, or that whose asynchronous function has not answered for longest; null where it has none. */
export function recordAt(
  block: Float64Array,
  originTopics: readonly string[],
  asynchronous = (block[laneIndex.oldestCall] as number) !== 0,
): RecordPlace | null {
  const [topicAt, partitionAt, offsetAt] = asynchronous
    ? [laneIndex.oldestTopic, laneIndex.oldestPartition, laneIndex.oldestOffset]
    : [laneIndex.currentTopic, laneIndex.currentPartition, laneIndex.currentOffset]
  const topic = originTopics[block[topicAt] as number]
  const partition = block[partitionAt] as number
  const offset = block[offsetAt] as number
  const known = topic !== undefined && offset >= 0 && (block[laneIndex.recordsReceived] as number) > 0
  return known ? { topic, partition, offset } : null
}

/** Functions with calls out, or records that wait for one. */
function functionCalls({ laneCounters, layout, nodeName }: BarrierFacts): FunctionCalls[] {
  const found: FunctionCalls[] = []
  for (let node = 0; node < layout.nodes; node++) {
    const sum = (slot: (typeof functionSlots)[number]): number =>
      laneCounters.reduce((total, block) => total + (block[functionSlot(layout, node, slot)] ?? 0), 0)
    const calls = sum('calls')
    const waiting = sum('waiting')
    if (calls > 0 || waiting > 0) found.push({ node: nodeName(node) ?? '', calls, waiting, limit: sum('limit') })
  }
  return found
}

/** What it was at last is over. */
function isIdle(block: Float64Array): boolean {
  return laneDoings[block[laneIndex.doing] as number] === 'idleMs'
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
    at: isIdle(block) ? null : recordAt(block, facts.originTopics),
    node: facts.nodeName(block[laneIndex.currentNode] as number),
  }
}

export function keyOf(p: { topic: string; partition: number }): PartitionKey {
  return partitionKey(p.topic, p.partition)
}
