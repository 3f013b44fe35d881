/** A fetch: what it gets from the logs as they are, and its wait while there is nothing to get. */
import type { FetchedPartition, FetchRequest } from '../../port.ts'
import type { PartitionLog } from './partition-log.ts'

const none = new Uint8Array(0)

/** A partition that somebody may wait for, with what they ask of it. */
interface Awaited {
  readonly waiters: Map<FetchWaiter, Asked>
}

/** There is none, or only that of another topic of the name. */
export type NoLog = 'UNKNOWN_TOPIC_OR_PARTITION' | 'UNKNOWN_TOPIC_ID'

/** The log of a partition, or why there is none. */
export type FindLog = (asked: Asked) => PartitionLog | NoLog

export interface FetchWaiter {
  readonly request: Omit<FetchRequest, 'signal'>
  readonly partitions: readonly Awaited[]
  readonly deadline: number
  readonly done: (answer: FetchedPartition[]) => void
}

export type Asked = FetchRequest['partitions'][number]

/** True if there is something to say of the partition at once: records, or an error. */
export function isReady(logOf: FindLog, asked: Asked, isolation: FetchRequest['isolation']): boolean {
  const log = logOf(asked)
  if (typeof log === 'string' || asked.offset < log.logStart || asked.offset > log.highWatermark) return true
  return asked.offset < (isolation === 'read_committed' ? log.lastStableOffset : log.highWatermark)
}

/**
 * The answer with what there is. `turn` says which partition is served first, so that a long list with much to read does
 * not starve its end; the order of the answer is that of the request.
 */
export function answer(logOf: FindLog, request: Omit<FetchRequest, 'signal'>, turn: number): FetchedPartition[] {
  const asked = request.partitions
  const fetched: FetchedPartition[] = new Array(asked.length)
  let room = request.maxBytes
  let first = true
  for (let i = 0; i < asked.length; i++) {
    const at = (i + turn) % asked.length
    const one = fetchOne(logOf, asked[at] as Asked, request.isolation, room, first)
    if (one.records.length > 0) first = false
    room -= one.records.length
    fetched[at] = one
  }
  return fetched
}

function fetchOne(
  logOf: FindLog,
  asked: Asked,
  isolation: FetchRequest['isolation'],
  room: number,
  first: boolean,
): FetchedPartition {
  const { topic, partition, offset } = asked
  const log = logOf(asked)
  if (typeof log === 'string') {
    const unknown = { highWatermark: -1, lastStableOffset: -1, logStartOffset: -1, aborted: [] }
    return { topic, partition, records: none, ...unknown, error: log }
  }
  const { highWatermark, lastStableOffset, logStart } = log
  const base = { topic, partition, highWatermark, lastStableOffset, logStartOffset: logStart }
  if (offset < logStart || offset > highWatermark) {
    return { ...base, records: none, aborted: [], error: 'OFFSET_OUT_OF_RANGE' }
  }
  if (room <= 0 && !first) return { ...base, records: none, aborted: [] }
  const committedOnly = isolation === 'read_committed'
  const limit = committedOnly ? lastStableOffset : highWatermark
  const records = log.read(offset, limit, Math.max(1, Math.min(asked.maxBytes, room)), first)
  const aborted = committedOnly && records.length > 0 ? log.abortedBetween(offset, limit) : []
  return { ...base, records, aborted }
}
