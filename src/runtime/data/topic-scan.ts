/** Walks a part of a topic once, and reads single records of it. */
import type { BrokerPort, FetchedPartition } from '../../broker/port.ts'
import type { Headers } from '../../broker/wire/headers.ts'
import { behind, fetchCommitted, readUpTo } from '../../broker/read-up-to.ts'
import { decodeHeaders, RecordCursor } from '../../broker/wire/record-batch.ts'
import { askAgain } from '../ask-again.ts'

const fetchBytes = 1024 * 1024
/** Of what is read for single records: they may lie far from one another. */
const pieceBytes = 64 * 1024

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

/**
 * Committed records, in the order of each partition, and all of them: whoever finds none of a kind may rely on that. `take`
 * answers false where it has seen enough.
 * @throws EngineError `BROKER_UNREACHABLE` where the broker does not show all of them, `BROKER_REFUSED` where it may not.
 */
export async function scan(
  broker: BrokerPort,
  topic: string,
  spans: readonly Span[],
  take: (record: ScannedRecord) => boolean,
): Promise<void> {
  for (const span of spans) {
    for await (const { records } of pieces(broker, topic, span, fetchBytes)) {
      for (const record of records) if (!take(record)) return
    }
  }
}

export interface Piece {
  /** What the broker has given for it. */
  readonly bytes: number
  readonly records: Iterable<ScannedRecord>
}

/**
 * The committed records of a span, one answer of the broker after the other. An answer takes about `maxBytes`, within
 * the bounds of this file.
 * @throws EngineError as `scan`.
 */
export async function* pieces(
  broker: BrokerPort,
  topic: string,
  { partition, from, to }: Span,
  maxBytes: number,
): AsyncGenerator<Piece, void> {
  const range = { topic, partition, from, to, maxBytes: Math.min(fetchBytes, Math.max(pieceBytes, maxBytes)) }
  for await (const piece of readUpTo(broker, range, askAgain)) {
    const { answer } = piece
    yield { bytes: answer.records.length, records: recordsUpTo(cursorOf(answer, piece.from), partition, to) }
  }
}

function* recordsUpTo(cursor: RecordCursor, partition: number, to: number): Generator<ScannedRecord, void> {
  while (cursor.next() && cursor.offset < to) yield recordAt(cursor, partition)
}

/**
 * The committed records at these places of a partition, which rise; none where one is gone. What lies between is read
 * along where it comes anyway. `take` answers false where it has seen enough.
 * @throws EngineError as `scan`.
 */
export async function recordsAt(
  broker: BrokerPort,
  topic: string,
  partition: number,
  offsets: readonly number[],
  take: (record: ScannedRecord) => boolean,
): Promise<void> {
  const span = (await spansOf(broker, topic))?.find((each) => each.partition === partition)
  if (span === undefined) return
  const places = offsets.filter((offset) => offset >= span.from && offset < span.to)
  for (let at = 0, vain = 0; at < places.length; ) {
    const wanted = places[at] as number
    const fetched = await fetchCommitted(broker, { topic, partition }, wanted, pieceBytes)
    const next = behind(fetched, wanted)
    if (fetched === undefined || next === wanted) {
      await askAgain({ topic, partition }, ++vain)
      continue
    }
    vain = 0
    const cursor = cursorOf(fetched, wanted)
    while (at < places.length && cursor.next()) {
      while ((places[at] ?? Number.POSITIVE_INFINITY) < cursor.offset) at++
      if (cursor.offset === places[at] && !take(recordAt(cursor, partition))) return
    }
    while ((places[at] ?? Number.POSITIVE_INFINITY) < next) at++
  }
}

function cursorOf({ records, aborted }: FetchedPartition, position: number): RecordCursor {
  const cursor = new RecordCursor()
  cursor.reset(records, position, aborted, 'read_committed')
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
