/**
 * Compaction keeps the last record of every key; retention drops the oldest segments. Offsets stay what they are, and
 * open transactions are waited for. Both run inside a write, once enough has come in since the last time.
 */
import { attributeBits, batchField, compressionOf, sealBatch } from '../../../wire/batch-header.ts'
import { decompress } from '../../../wire/compression.ts'
import { readInt16, writeInt16, writeInt32 } from '../../../wire/integers.ts'
import { type BatchHeader, batchHeader, batchHeaderSize, stampBatch } from '../../../wire/record-batch.ts'
import { VarintReader } from '../../../wire/varint.ts'
import { BrokerError } from '../../port.ts'
import type { PartitionLog, Segment } from './partition-log.ts'
import type { Partition } from './topics.ts'

/** Compacts or shortens the log where its topic asks for it and it has grown enough. */
export function maintain(partition: Partition, now: number, compactionBytes: number): void {
  const { topic, log } = partition
  if (topic.compacted) {
    // While a transaction is open, what follows it cannot be judged yet; its end comes by here too.
    const isDue = log.bytes - partition.cleanBytes >= Math.max(compactionBytes, partition.cleanBytes / 2)
    if (isDue && log.open.size === 0) {
      tryCompact(partition, now)
      partition.cleanBytes = log.bytes
    }
  }
  if (topic.retentionBytes >= 0 || topic.retentionMs >= 0) expireSegments(partition)
}

/** Without room on the disk the log stays as it is, until it has grown by as much again: no write fails for that. */
function tryCompact(partition: Partition, now: number): void {
  try {
    compact(partition, now)
  } catch (error) {
    if (!(error instanceof BrokerError)) throw error
  }
}

function compact(partition: Partition, now: number): void {
  const { log, passes, topic } = partition
  log.roll()
  const segments = log.segments.slice(0, -1)
  const covered = log.highWatermark
  // Tombstones stay for a while after the pass that saw them first, so that a reader who is behind learns of the deletion.
  const seen = passes.filter((pass) => pass.at + topic.deleteRetentionMs <= now).at(-1)?.end ?? 0
  passes.push({ end: covered, at: now })
  const contents = segments.map(({ file }) => {
    const bytes = new Uint8Array(file.size)
    file.copy(0, bytes, 0, bytes.length)
    return bytes
  })
  const aborted = abortedFilter(log)
  const latest = latestByKey(contents, aborted)
  const kept: Uint8Array[] = []
  for (const bytes of contents) {
    for (let at = 0; at < bytes.length; ) {
      const header = batchHeader(bytes, at)
      const isLast = header.lastOffset === covered - 1
      const batch = retained(bytes.subarray(at, at + header.size), header, latest, aborted, isLast, seen)
      if (batch !== undefined) kept.push(batch)
      at += header.size
    }
  }
  log.replaceFirst(segments.length, kept, covered)
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

interface RawRecord {
  readonly start: number
  readonly end: number
  readonly offset: number
  readonly key: string | null
  readonly isTombstone: boolean
}

/** The records of a batch as ranges of `bytes`, which are its own or its decompressed ones. */
function recordsOf(batch: Uint8Array, header: BatchHeader): { bytes: Uint8Array; records: RawRecord[] } {
  const { compression } = header
  const body = batch.subarray(batchHeaderSize)
  const bytes = compression === 'none' ? body : decompress(compression, body)
  const reader = new VarintReader(bytes)
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const records: RawRecord[] = []
  for (let i = 0; i < header.recordCount; i++) {
    const start = reader.at
    const length = reader.next()
    const end = reader.at + length
    reader.at++
    reader.next()
    const offset = header.baseOffset + reader.next()
    const keyLength = reader.next()
    const key = keyLength < 0 ? null : text.toString('latin1', reader.at, reader.at + keyLength)
    reader.at += Math.max(keyLength, 0)
    records.push({ start, end, offset, key, isTombstone: reader.next() < 0 })
    reader.at = end
  }
  return { bytes, records }
}

function latestByKey(contents: readonly Uint8Array[], aborted: AbortedFilter): Map<string, number> {
  const latest = new Map<string, number>()
  for (const bytes of contents) {
    for (let at = 0; at < bytes.length; ) {
      const header = batchHeader(bytes, at)
      if (!header.control && !aborted(header)) {
        for (const { key, offset } of recordsOf(bytes.subarray(at, at + header.size), header).records) {
          if (key !== null) latest.set(key, offset)
        }
      }
      at += header.size
    }
  }
  return latest
}

/**
 * What is left of a batch; undefined for nothing. The last one stays even if it is empty, or a marker: it says how far
 * the log went.
 */
function retained(
  batch: Uint8Array,
  header: BatchHeader,
  latest: ReadonlyMap<string, number>,
  aborted: AbortedFilter,
  isLast: boolean,
  tombstonesBelow: number,
): Uint8Array | undefined {
  if (header.control) return isLast ? batch : undefined
  // Its marker goes, and it needs none any more: what is left was committed.
  if (header.transactional) stampBatch(batch, { ...header, transactional: false })
  const { bytes, records } = recordsOf(batch, header)
  const kept = aborted(header)
    ? []
    : records.filter(
        ({ key, offset, isTombstone }) =>
          key === null || (latest.get(key) === offset && !(isTombstone && offset < tombstonesBelow)),
      )
  if (kept.length === records.length) return batch
  if (kept.length === 0 && !isLast) return undefined
  const size = kept.reduce((sum, { start, end }) => sum + end - start, batchHeaderSize)
  const result = new Uint8Array(size)
  result.set(batch.subarray(0, batchHeaderSize))
  let at = batchHeaderSize
  for (const { start, end } of kept) {
    result.set(bytes.subarray(start, end), at)
    at += end - start
  }
  writeInt32(result, batchField.length, size - 12)
  writeInt32(result, batchField.recordCount, kept.length)
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
