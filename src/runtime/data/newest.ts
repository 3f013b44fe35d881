/**
 * The newest records of a topic by their timestamps, over all of its partitions.
 *
 * A partition is read backwards from its end, in steps: nobody tells how many records lie between two offsets, for
 * some are markers of transactions, were given up with one, or were compacted away. Each partition is read one step
 * at first. Then the one goes on whose last step had the latest timestamp, for as long as that is later than the last
 * of the newest records. So a partition is read far only where its records are among the newest.
 *
 * Where timestamps rise with the offsets, as they mostly do, these are the newest. Elsewhere a step counts by the
 * latest of its timestamps, so that a single one that is wrong hides nothing. What lies before a whole step of old
 * ones may be missed.
 */
import type { BrokerPort } from '../../broker/port.ts'
import { pieces, type ScannedRecord, type Span } from './topic-scan.ts'

/** A step has so many offsets at least. */
const fewestOffsets = 16
/** Steps become longer until they take about so much. One that turns out to take more is given up for a shorter one. */
const stepBytes = 8 * 1024 * 1024
/** All steps of a call together: it bounds the work, whatever lies in the topic, and the memory of the records. */
const mostBytes = 256 * 1024 * 1024

export interface Newest {
  /** Newest first. */
  readonly records: readonly ScannedRecord[]
  /** There are older ones, or the bytes of a call were used up before that could be told. */
  readonly more: boolean
}

/** How far a partition has been read, from its end backwards. */
interface Tail extends Span {
  /** Everything from here on was read. */
  at: number
  /** Of the next step. */
  offsets: number
  steps: number
  /** The latest timestamp of the last step that had records: what lies before it is taken to be no later. */
  latest: number | undefined
}

/** @throws EngineError as `scan`. */
export async function newest(broker: BrokerPort, topic: string, spans: readonly Span[], most: number): Promise<Newest> {
  const filled = spans.filter(({ from, to }) => from < to)
  const offsets = Math.max(fewestOffsets, Math.ceil((most + 1) / filled.length))
  const tails = filled.map((span): Tail => ({ ...span, at: span.to, offsets, steps: 0, latest: undefined }))
  // One more than is wanted: it tells that there are more.
  let records: ScannedRecord[] = []
  for (let bytes = 0; ; ) {
    const tail = nextOf(tails, records[most]?.timestamp)
    if (tail === undefined) return { records: records.slice(0, most), more: records.length > most }
    if (bytes >= mostBytes) return { records: records.slice(0, most), more: true }
    const step = await stepBack(broker, topic, tail, most)
    bytes += step.bytes
    if (step.records.length > 0) records = [...records, ...step.records].sort(newestFirst).slice(0, most + 1)
  }
}

/** The partition to be read further, if any may have records later than `least`. */
function nextOf(tails: readonly Tail[], least = Number.NEGATIVE_INFINITY): Tail | undefined {
  let best: Tail | undefined
  for (const tail of tails) {
    const mayHave = tail.at > tail.from && (tail.latest ?? Number.POSITIVE_INFINITY) > least
    if (mayHave && (best === undefined || rank(tail) > rank(best))) best = tail
  }
  return best
}

/** One that has shown nothing but marks comes last: it might use up what the others need. */
function rank({ steps, latest }: Tail): number {
  return steps === 0 ? Number.POSITIVE_INFINITY : (latest ?? Number.NEGATIVE_INFINITY)
}

/** Reads what lies right before that which was read; nothing where that turns out to be too much for one step. */
async function stepBack(
  broker: BrokerPort,
  topic: string,
  tail: Tail,
  most: number,
): Promise<{ records: ScannedRecord[]; bytes: number }> {
  const { partition, offsets, at } = tail
  const from = Math.max(tail.from, at - offsets)
  const records: ScannedRecord[] = []
  let bytes = 0
  // Brokers give as many bytes as they may, those behind the step included, which were read before.
  for await (const piece of pieces(broker, topic, { partition, from, to: at }, offsets * 1024)) {
    bytes += piece.bytes
    for (const record of piece.records) records.push(record)
    if ((bytes > stepBytes || records.length > 4 * most) && offsets > fewestOffsets) {
      // Behind a gap there may be as many records as the gap had offsets.
      tail.offsets = Math.max(fewestOffsets, offsets >> 2)
      return { records: [], bytes }
    }
  }
  const next = records.length < most ? offsets * 2 : offsets
  tail.offsets = Math.max(fewestOffsets, Math.min(next, Math.floor((stepBytes / Math.max(1, bytes)) * offsets)))
  tail.at = from
  tail.steps++
  if (records.length > 0) {
    tail.latest = records.reduce((latest, { timestamp }) => Math.max(latest, timestamp), Number.NEGATIVE_INFINITY)
  }
  return { records, bytes }
}

/** Of one time the one that was written last. */
function newestFirst(a: ScannedRecord, b: ScannedRecord): number {
  return b.timestamp - a.timestamp || b.offset - a.offset || a.partition - b.partition
}
