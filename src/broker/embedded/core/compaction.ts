/**
 * Compaction keeps the last record of every key, and all that a topic's lag protects; retention drops the oldest segments.
 * Offsets stay what they are, and open transactions are waited for. Both run inside a write, once enough has come in
 * since the last time.
 */
import { assert } from '../../../base/assert.ts'
import { attributeBits, batchField, compressionOf, sealBatch } from '../../wire/batch-header.ts'
import { readInt16, writeInt16, writeInt32 } from '../../wire/integers.ts'
import {
  type BatchHeader,
  batchHeader,
  batchHeaderSize,
  batchSize,
  CorruptBatchError,
  stampBatch,
} from '../../wire/record-batch.ts'
import { BrokerError } from '../../port.ts'
import { BatchRecords } from './batch-records.ts'
import { KeySet } from './key-set.ts'
import type { PartitionLog, Segment } from './partition-log.ts'
import type { SegmentFile } from './storage.ts'
import type { Partition } from './topics.ts'

/** Room for so many keys is made at once. */
const mostExpected = 2 ** 20
/** Places of so many keys are touched together. */
const ahead = 64

/** Compacts or shortens the log where its topic asks for it and it has grown enough. */
export function maintain(partition: Partition, now: number, compactionBytes: number): void {
  const { topic, log } = partition
  if (topic.compacted) {
    const segments = settled(partition, now)
    const bytes = sizeOf(segments)
    // While a transaction is open, what follows it cannot be judged yet; its end comes by here too.
    // No sooner than two thirds of it are new: a record is looked at twice or so in its life.
    const isDue = bytes - partition.cleanBytes >= Math.max(compactionBytes, 2 * partition.cleanBytes)
    if (isDue && log.open.size === 0) {
      partition.cleanBytes = bytes
      unlessRefused(() => compact(partition, segments.length, now))
    }
  }
  if (topic.retentionBytes >= 0 || topic.retentionMs >= 0) unlessRefused(() => expireSegments(partition))
}

/**
 * Without room on the disk, or where a batch cannot be read, the log stays as it is, until it has grown by as much again:
 * no write fails for that.
 */
function unlessRefused(work: () => void): void {
  try {
    work()
  } catch (error) {
    if (!(error instanceof BrokerError || error instanceof CorruptBatchError)) throw error
  }
}

/**
 * The segments from the beginning that may be compacted by now. Behind the first that has a record within the topic's lag
 * all stay as they are: as in Kafka, the records' own timestamps count. What was compacted before was settled then.
 */
function settled({ topic, log, cleanEnd }: Partition, now: number): readonly Segment[] {
  const { segments } = log
  const since = now - topic.minCompactionLagMs
  if (topic.minCompactionLagMs <= 0) return segments
  const first = segments.findIndex(({ file, maxTimestamp }) => file.baseOffset >= cleanEnd && maxTimestamp > since)
  return first < 0 ? segments : segments.slice(0, first)
}

const sizeOf = (segments: readonly Segment[]): number => segments.reduce((sum, { file }) => sum + file.size, 0)

/** Compacts the first `count` segments; the one that is written to is closed before, where it is among them. */
function compact(partition: Partition, count: number, now: number): void {
  const { log, passes, topic, cleanEnd } = partition
  const end = log.highWatermark
  if (count === log.segments.length) log.roll()
  const segments = log.segments.slice(0, Math.min(count, log.segments.length - 1))
  const covered = (log.segments[segments.length] as Segment).file.baseOffset
  // Tombstones stay for a while after the pass that saw them first, so that a reader who is behind learns of the deletion.
  const seen = passes.filter((pass) => pass.at + topic.deleteRetentionMs <= now).at(-1)?.end ?? 0
  passes.push({ end: covered, at: now })
  const pass = {
    aborted: abortedFilter(log),
    newer: new KeySet(Math.min(mostExpected, covered - cleanEnd, partition.cleanKeys || mostExpected)),
    cleanEnd,
    covered,
    seen,
  }
  const kept: Uint8Array[] = []
  for (const { file } of segments.toReversed()) {
    for (const bytes of wholeBatches(file).reverse()) keepLatest(bytes, pass, kept)
  }
  records.clear()
  log.replaceFirst(segments.length, kept.reverse(), covered)
  assert(log.highWatermark === end, 'a log ends after its compaction where it ended before')
  partition.cleanBytes = (log.segments[0] as Segment).file.size
  partition.cleanEnd = covered
  partition.cleanKeys = pass.newer.size
  pass.newer.release()
}

/** The segment in pieces, in order: where it lies in memory as it lies there. */
function wholeBatches(file: SegmentFile): Uint8Array[] {
  if (file.chunks !== undefined) return file.chunks()
  const bytes = new Uint8Array(file.size)
  file.copy(0, bytes, 0, bytes.length)
  return [bytes]
}

/** One pass through a log, from its end. */
interface Pass {
  readonly aborted: AbortedFilter
  /** Keys of the records behind. */
  readonly newer: KeySet
  /** What is older has each of its keys once: none of these needs to be noted. */
  readonly cleanEnd: number
  /** Where what is compacted ends. */
  readonly covered: number
  /** Tombstones before this offset have been there long enough. */
  readonly seen: number
}

/** Adds what is left of a segment's batches to `kept`, the last one first. */
function keepLatest(bytes: Uint8Array, pass: Pass, kept: Uint8Array[]): void {
  const starts: number[] = []
  for (let at = 0; at < bytes.length; at += batchSize(bytes, at)) starts.push(at)
  for (const at of starts.reverse()) {
    const header = batchHeader(bytes, at)
    const batch = retained(bytes.subarray(at, at + header.size), header, pass)
    if (batch !== undefined) kept.push(batch)
  }
}

type AbortedFilter = (header: BatchHeader) => boolean

function abortedFilter(log: PartitionLog): AbortedFilter {
  const ranges = new Map<bigint, Array<readonly [first: number, last: number]>>()
  for (const { producerId, firstOffset, lastOffset } of log.aborted) {
    const known = ranges.get(producerId)
    if (known === undefined) ranges.set(producerId, [[firstOffset, lastOffset]])
    else known.push([firstOffset, lastOffset])
  }
  return ({ transactional, producerId, baseOffset }) =>
    transactional &&
    (ranges.get(producerId)?.some(([first, last]) => first <= baseOffset && baseOffset <= last) ?? false)
}

const records = new BatchRecords()

/**
 * What is left of a batch; undefined for nothing. The last one stays even if it is empty, or a marker: it says how far
 * the log, or this part of it, went.
 */
function retained(batch: Uint8Array, header: BatchHeader, pass: Pass): Uint8Array | undefined {
  const isLast = header.lastOffset === pass.covered - 1
  if (header.control) return isLast ? batch : undefined
  if (!pass.aborted(header)) {
    // Its marker goes, and it needs none any more: what is left was committed. What could be seen of this where it lies
    // is the same either way.
    if (header.transactional) stampBatch(batch, { ...header, transactional: false })
    records.open(batch, header)
    const left = keepRecords(header, pass)
    if (left === header.recordCount) return batch
    if (left > 0) return batchOf(batch, left)
  }
  if (!isLast) return undefined
  records.clear()
  const empty = batchOf(batch, 0)
  if (header.transactional) stampBatch(empty, { ...header, transactional: false })
  return empty
}

/** Lets go of those whose key comes again behind them, and of old tombstones; says how many are left. */
function keepRecords({ baseOffset }: BatchHeader, { newer, cleanEnd, seen }: Pass): number {
  const isClean = baseOffset < cleanEnd
  const { bytes, hashes } = records
  let left = records.count
  for (let end = left; end > 0; ) {
    const start = Math.max(0, end - ahead)
    newer.touch(hashes, start, end)
    for (let i = end - 1; i >= start; i--) {
      const length = records.keyLength(i)
      if (length < 0) continue
      const key = records.keyStart(i)
      const hash = hashes[i] as number
      const isOver = isClean ? newer.has(hash, bytes, key, key + length) : !newer.add(hash, bytes, key, key + length)
      if (isOver || (records.isTombstone(i) && baseOffset + records.offset(i) < seen)) {
        records.drop(i)
        left--
      }
    }
    end = start
  }
  assert(left >= 0, `a batch has ${left} records left`)
  return left
}

function batchOf(batch: Uint8Array, count: number): Uint8Array {
  const size = batchHeaderSize + records.leftBytes
  const result = new Uint8Array(Buffer.allocUnsafeSlow(size).buffer)
  result.set(batch.subarray(0, batchHeaderSize))
  records.copyLeft(result, batchHeaderSize)
  writeInt32(result, batchField.length, size - 12)
  writeInt32(result, batchField.recordCount, count)
  const attributes = readInt16(result, batchField.attributes)
  if (compressionOf(attributes) !== 'none') {
    writeInt16(result, batchField.attributes, attributes & ~attributeBits.compression)
  }
  sealBatch(result)
  return result
}

/**
 * Drops whole segments from the beginning. Age is measured against the newest record of the partition, not the clock: a
 * topic that is fed with old data keeps it.
 */
function expireSegments({ topic, log }: Partition): void {
  const newest = log.segments.reduce((most, { maxTimestamp }) => Math.max(most, maxTimestamp), -1)
  let bytes = topic.retentionBytes >= 0 ? log.bytes : 0
  const end = log.lastStableOffset
  while (log.segments.length > 1) {
    const first = log.segments[0] as Segment
    const tooMuch = topic.retentionBytes >= 0 && bytes - first.file.size >= topic.retentionBytes
    const tooOld = topic.retentionMs >= 0 && first.maxTimestamp < newest - topic.retentionMs
    if (!(tooMuch || tooOld) || (log.segments[1] as Segment).file.baseOffset > end) return
    bytes -= first.file.size
    log.dropFirst()
  }
}
