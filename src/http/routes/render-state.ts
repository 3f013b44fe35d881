/** The engine's snapshots in the shape of the HTTP interface: names, renderings and sums, no values of their own. */
import type {
  BarrierSnapshot,
  ConsumerSnapshot,
  EngineFailure,
  OffsetsSnapshot,
  StateSnapshot,
  ThreadsSnapshot,
  WatermarkSnapshot,
} from '../../view/view.ts'
import { iso, isoOfClock } from '../time.ts'
import type { Answer } from './schemas.ts'

type Entry<T> = readonly [key: string, value: T]
type ShownPartition = Answer<'Watermarks'>['partitions'][string]
type ShownBuffer = Answer<'Consumer'>['assignment'][string]

/** `mask` takes secrets out of a failure's message: it may quote what the application threw. */
export function renderState(state: StateSnapshot, mask: (text: string) => string): Answer<'State'> {
  const { failure, restore } = state
  return {
    current: state.current,
    since: isoOfClock(state.sinceMs),
    history: state.history.map((entry) => ({ state: entry.state, from: entry.from, at: isoOfClock(entry.atMs) })),
    ...(failure === null ? {} : { failure: renderFailure(failure, mask) }),
    ...(restore.length === 0 ? {} : { restore }),
  }
}

function renderFailure(
  { code, message, record }: EngineFailure,
  mask: (text: string) => string,
): NonNullable<Answer<'State'>['failure']> {
  return { code, message: mask(message), ...(record === undefined ? {} : { record }) }
}

export function renderWatermarks(snapshot: WatermarkSnapshot): Answer<'Watermarks'> {
  const partitions = Object.entries(snapshot.partitions).map(([key, partition]): Entry<ShownPartition> => {
    const { watermarkMs, lastEventTimeMs, previewWatermarkMs, headHeldSinceMs } = partition
    return [
      key,
      {
        watermarkMs,
        watermarkIso: iso(watermarkMs),
        idle: partition.idle,
        lastEventTimeMs,
        lastEventTimeIso: iso(lastEventTimeMs),
        idlenessTimeoutMs: partition.idlenessTimeoutMs,
        alignmentGroup: partition.alignmentGroup,
        alignmentHeld: partition.alignmentHeld,
        driftFromGroupMinMs: partition.driftFromGroupMinMs,
        ...(previewWatermarkMs === undefined
          ? {}
          : { previewWatermarkMs, previewWatermarkIso: iso(previewWatermarkMs) }),
        ...(headHeldSinceMs === undefined ? {} : { headHeldSinceMs }),
      },
    ]
  })
  const binding = snapshot.alignmentBinding
  return {
    globalMs: snapshot.globalMs,
    globalIso: iso(snapshot.globalMs),
    alignmentGroupMins: snapshot.alignmentGroupMins,
    alignmentBinding:
      binding === null
        ? null
        : {
            group: binding.group,
            partition: binding.partition,
            emptyLaggards: binding.emptyLaggards,
            sinceMs: binding.sinceMs,
          },
    partitions: Object.fromEntries(partitions),
  }
}

export function renderOffsets(snapshot: OffsetsSnapshot): Answer<'Offsets'> {
  const sources = snapshot.sources.map(({ topic, partitions }) => {
    const rows = partitions.map(({ partition, committedOffset, logEndOffset, withheld }) => ({
      partition,
      committedOffset,
      logEndOffset,
      lag: logEndOffset - committedOffset,
      withheld,
    }))
    return { topic, totalLag: rows.reduce((sum, row) => sum + row.lag, 0), partitions: rows }
  })
  const changelogs = snapshot.changelogs.map(({ topic, store, partitions }) => ({
    topic,
    store,
    partitions: partitions.map(({ partition, committedOffset }) => ({ partition, committedOffset })),
  }))
  return { totalLag: sources.reduce((sum, source) => sum + source.totalLag, 0), sources, changelogs }
}

export function renderConsumer(snapshot: ConsumerSnapshot): Answer<'Consumer'> {
  const { groupId, memberId, generationId, groupInstanceId, subscription, lastCommitMs } = snapshot
  const assignment = Object.entries(snapshot.assignment).map(
    ([key, { buffered, bufferCapacity, paused }]): Entry<ShownBuffer> => [key, { buffered, bufferCapacity, paused }],
  )
  return {
    group: { groupId, memberId, generationId, groupInstanceId },
    subscription,
    lastCommitMs,
    lastCommitIso: iso(lastCommitMs),
    assignment: Object.fromEntries(assignment),
  }
}

export function renderBarriers(snapshot: BarrierSnapshot, nowMs: number): Answer<'Barriers'> {
  const { startedAtMs, phaseSinceMs, transaction } = snapshot
  const age = (sinceMs: number): number => Math.max(0, Math.round(nowMs - sinceMs))
  return {
    phase: snapshot.phase,
    phaseSinceMs,
    phaseAgeMs: age(phaseSinceMs),
    commitId: snapshot.commitId,
    epoch: snapshot.epoch,
    trigger: snapshot.trigger,
    startedAtMs,
    ageMs: startedAtMs === null ? null : age(startedAtMs),
    queued: snapshot.queued,
    outstandingLanes: snapshot.outstandingLanes,
    lanes: snapshot.lanes.map(({ lane, acked, queuedRecords, lastProgressMs, at, node, pace }) => ({
      lane,
      acked,
      queuedRecords,
      lastProgressMs,
      progressAgeMs: lastProgressMs > 0 ? age(lastProgressMs) : null,
      at,
      node,
      ...pace,
    })),
    aimMs: snapshot.aimMs ?? null,
    functions: snapshot.functions ?? [],
    transaction:
      transaction === null
        ? null
        : { ...transaction, ageMs: transaction.openSinceMs === null ? null : age(transaction.openSinceMs) },
    restarts: snapshot.restarts,
    last: snapshot.last.map((commit) => ({ ...commit, at: isoOfClock(commit.atMs) })),
  }
}

export type ThreadFilter = 'all' | 'stuck' | 'known'

/** `stuck` keeps what is not RUNNABLE; `known` keeps the threads that belong to the engine. */
export function renderThreads(snapshot: ThreadsSnapshot, filter: ThreadFilter): Answer<'Threads'> {
  const { timestamp, engineThreads, platformThreads } = snapshot
  if (filter === 'stuck') {
    const stuck = (thread: { readonly state: string }): boolean => thread.state !== 'RUNNABLE'
    return { timestamp, engineThreads: engineThreads.filter(stuck), platformThreads: platformThreads.filter(stuck) }
  }
  if (filter === 'known') {
    const names = new Set(engineThreads.map((thread) => thread.name))
    const isKnown = (thread: { readonly name: string; readonly tid: number }): boolean =>
      names.has(thread.name) || thread.tid === process.pid
    return { timestamp, engineThreads, platformThreads: platformThreads.filter(isKnown) }
  }
  return { timestamp, engineThreads, platformThreads }
}
