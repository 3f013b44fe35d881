/** Walks a part of a topic once, and reads single records of it. */
import type { BrokerPort, FetchedPartition } from '../../broker/port.ts'
import type { Headers } from '../../broker/wire/headers.ts'
import { decodeHeaders, RecordCursor } from '../../broker/wire/record-batch.ts'

const fetchWaitMs = 250
const fetchBytes = 1024 * 1024
/** Of what is read for single records: they may lie far from one another. */
const pieceBytes = 64 * 1024
/** An empty answer where there should be something may come once; what comes so often is gone. */
const patience = 4

export interface Span {
  readonly partition: number
  /** First offset, and the first one that is not meant. */
  readonly from: number
  readonly to: number
}

export interface ScannedRecord {
  readonly partition: number
  readonly offset: number
  readonly timestamp: number
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly headers: Headers
}

/** What of the topic is committed, by partition; undefined where there is no such topic. */
export async function spansOf(broker: BrokerPort, topic: string): Promise<Span[] | undefined> {
  const [info] = await broker.topics([topic])
  if (info === undefined) return undefined
  const partitions = Array.from({ length: info.partitions }, (_, partition) => ({ topic, partition }))
  const starts = await broker.listOffsets(partitions, 'earliest')
  const ends = await broker.listOffsets(partitions, 'stable')
  const startOf = new Map(starts.map(({ partition, offset }) => [partition, offset]))
  return ends.map(({ partition, offset }) => ({ partition, from: startOf.get(partition) ?? 0, to: offset }))
}

/** Committed records, in the order of each partition. `take` answers false where it has seen enough. */
export async function scan(
  broker: BrokerPort,
  topic: string,
  spans: readonly Span[],
  take: (record: ScannedRecord) => boolean,
): Promise<void> {
  for (const { partition, from, to } of spans) {
    let position = from
    for (let vain = 0; position < to && vain < patience; ) {
      const fetched = await fetchOne(broker, topic, partition, position, fetchBytes)
      const cursor = cursorOf(fetched, position)
      while (cursor.next() && cursor.offset < to) if (!take(recordAt(cursor, partition))) return
      const next = fetched?.error === undefined ? cursor.position : Math.max(fetched.logStartOffset, position)
      vain = next > position ? 0 : vain + 1
      position = Math.max(position, next)
    }
  }
}

/**
 * The committed records at these places of a partition, which rise; none where one is gone. What lies between is read
 * along where it comes anyway.
 */
export async function recordsAt(
  broker: BrokerPort,
  topic: string,
  partition: number,
  offsets: readonly number[],
): Promise<Map<number, ScannedRecord>> {
  const found = new Map<number, ScannedRecord>()
  for (let at = 0, vain = 0; at < offsets.length && vain < patience; ) {
    const wanted = offsets[at] as number
    const fetched = await fetchOne(broker, topic, partition, wanted, pieceBytes)
    const cursor = cursorOf(fetched, wanted)
    while (at < offsets.length && cursor.next()) {
      while ((offsets[at] ?? Number.POSITIVE_INFINITY) < cursor.offset) at++
      if (cursor.offset === offsets[at]) found.set(cursor.offset, recordAt(cursor, partition))
    }
    const next = fetched?.error === undefined ? cursor.position : Math.max(fetched.logStartOffset, wanted)
    while ((offsets[at] ?? Number.POSITIVE_INFINITY) < next) at++
    vain = next > wanted ? 0 : vain + 1
  }
  return found
}

async function fetchOne(
  broker: BrokerPort,
  topic: string,
  partition: number,
  offset: number,
  maxBytes: number,
): Promise<FetchedPartition | undefined> {
  const [fetched] = await broker.fetch({
    partitions: [{ topic, partition, offset, maxBytes }],
    maxWaitMs: fetchWaitMs,
    maxBytes,
    isolation: 'read_committed',
  })
  return fetched
}

function cursorOf(fetched: FetchedPartition | undefined, position: number): RecordCursor {
  const cursor = new RecordCursor()
  const usable = fetched !== undefined && fetched.error === undefined
  cursor.reset(usable ? fetched.records : new Uint8Array(0), position, usable ? fetched.aborted : [], 'read_committed')
  return cursor
}

function recordAt(cursor: RecordCursor, partition: number): ScannedRecord {
  const { bytes, offset, timestamp, keyStart, keyEnd, valueStart, valueEnd } = cursor
  return {
    partition,
    offset,
    timestamp,
    key: keyStart < 0 ? null : bytes.slice(keyStart, keyEnd),
    value: valueStart < 0 ? null : bytes.slice(valueStart, valueEnd),
    headers: cursor.headerCount === 0 ? [] : decodeHeaders(bytes, cursor.headersStart, cursor.headersEnd),
  }
}
