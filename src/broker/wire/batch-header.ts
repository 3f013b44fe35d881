/** The head of a record batch, format 2: reading it, and setting in place what a producer and a broker set. */
import { CorruptBatchError, damaged } from './corrupt.ts'
import { crc32c, replacePrefix } from './crc32c.ts'
import {
  readBigInt64,
  readInt16,
  readInt32,
  readInt64,
  writeBigInt64,
  writeInt16,
  writeInt32,
  writeInt64,
} from './integers.ts'

/** Bytes before the records. */
export const batchHeaderSize = 61
/** Where the fields lie. The checksum covers everything from `attributes` on. */
export const batchField = {
  baseOffset: 0,
  length: 8,
  leaderEpoch: 12,
  magic: 16,
  crc: 17,
  attributes: 21,
  lastOffsetDelta: 23,
  baseTimestamp: 27,
  maxTimestamp: 35,
  producerId: 43,
  producerEpoch: 51,
  baseSequence: 53,
  recordCount: 57,
} as const
const prefixedLength = 12
export const attributeBits = { compression: 0x07, logAppendTime: 0x08, transactional: 0x10, control: 0x20 } as const

export type Compression = 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd'
const compressions: readonly Compression[] = ['none', 'gzip', 'snappy', 'lz4', 'zstd']

export interface BatchHeader {
  /** Bytes of the whole batch, this header included. */
  readonly size: number
  readonly baseOffset: number
  readonly lastOffset: number
  readonly baseTimestamp: number
  readonly maxTimestamp: number
  readonly compression: Compression
  readonly transactional: boolean
  /** A transaction marker, no data. */
  readonly control: boolean
  /** -1 without an idempotent producer, and so the two that follow. */
  readonly producerId: bigint
  readonly producerEpoch: number
  readonly baseSequence: number
  readonly recordCount: number
}

/**
 * Length of the batch at `at`, or -1 where the bytes end before it does. Throws `CorruptBatchError` where no batch of
 * format 2 can begin here.
 */
export function batchSize(bytes: Uint8Array, at = 0, end = bytes.length): number {
  if (end - at <= batchField.magic) return -1
  const magic = bytes[at + batchField.magic] as number
  if (magic !== 2) {
    if (magic > 2) throw new CorruptBatchError(`A record batch of the unknown format ${magic} cannot be read.`)
    throw new CorruptBatchError(
      `Records of the old message format ${magic} cannot be read: rewrite the topic with a producer of Kafka 0.11 or later.`,
      'UNSUPPORTED_FOR_MESSAGE_FORMAT',
    )
  }
  const size = readInt32(bytes, at + batchField.length) + prefixedLength
  if (size < batchHeaderSize) {
    throw new CorruptBatchError(`A record batch gives its length as ${size} bytes, fewer than its header takes.`)
  }
  return at + size > end ? -1 : size
}

/** The header of the whole batch at `at`. */
export function batchHeader(bytes: Uint8Array, at = 0): BatchHeader {
  const size = batchSize(bytes, at)
  if (size < 0) throw new CorruptBatchError('A record batch is cut off: its bytes end before its length says.')
  const attributes = readInt16(bytes, at + batchField.attributes)
  const baseOffset = readInt64(bytes, at + batchField.baseOffset)
  return {
    size,
    baseOffset,
    lastOffset: baseOffset + readInt32(bytes, at + batchField.lastOffsetDelta),
    baseTimestamp: readInt64(bytes, at + batchField.baseTimestamp),
    maxTimestamp: readInt64(bytes, at + batchField.maxTimestamp),
    compression: compressionOf(attributes),
    transactional: (attributes & attributeBits.transactional) !== 0,
    control: (attributes & attributeBits.control) !== 0,
    producerId: readBigInt64(bytes, at + batchField.producerId),
    producerEpoch: readInt16(bytes, at + batchField.producerEpoch),
    baseSequence: readInt32(bytes, at + batchField.baseSequence),
    recordCount: readInt32(bytes, at + batchField.recordCount),
  }
}

export function compressionOf(attributes: number): Compression {
  const name = compressions[attributes & attributeBits.compression]
  if (name === undefined) {
    throw new CorruptBatchError(
      `A record batch is compressed in the unknown way ${attributes & attributeBits.compression}.`,
      'UNSUPPORTED_COMPRESSION_TYPE',
    )
  }
  return name
}

/** Whether the checksum of the batch of `size` bytes at `at` is right. */
export function checksumHolds(bytes: Uint8Array, at: number, size: number): boolean {
  return readInt32(bytes, at + batchField.crc) >>> 0 === crc32c(bytes, at + batchField.attributes, at + size)
}

/** Records in whole batches, one after the other: the sum of their headers, nothing is decoded. */
export function countRecords(batches: Uint8Array): number {
  let count = 0
  for (let at = 0; at < batches.length; ) {
    const size = batchSize(batches, at)
    if (size < 0) break
    count += readInt32(batches, at + batchField.recordCount)
    at += size
  }
  return count
}

/**
 * Where to read on behind these batches, control batches and compacted ones included; `from` where they hold nothing
 * beyond it. Checks every checksum and decodes nothing.
 */
export function endOfBatches(batches: Uint8Array, from: number): number {
  let end = from
  for (let at = 0; ; ) {
    const size = batchSize(batches, at)
    if (size < 0) return end
    const baseOffset = readInt64(batches, at + batchField.baseOffset)
    const lastOffsetDelta = readInt32(batches, at + batchField.lastOffsetDelta)
    if (lastOffsetDelta < 0 || baseOffset < 0 || !checksumHolds(batches, at, size)) throw damaged(baseOffset)
    end = Math.max(end, baseOffset + lastOffsetDelta + 1)
    at += size
  }
}

/** The offset of the batch's first record, as a broker assigns it. Not covered by the checksum. */
export function setBaseOffset(bytes: Uint8Array, offset: number, at = 0): void {
  writeInt64(bytes, at + batchField.baseOffset, offset)
}

export function setLeaderEpoch(bytes: Uint8Array, epoch: number, at = 0): void {
  writeInt32(bytes, at + batchField.leaderEpoch, epoch)
}

export interface BatchStamp {
  readonly producerId: bigint
  readonly producerEpoch: number
  readonly baseSequence: number
  readonly transactional: boolean
}

/**
 * Sets the producer's identity in the one batch that `batch` is, in place. The checksum is carried over from the one
 * that stands there, whatever the size of the batch.
 */
export function stampBatch(batch: Uint8Array, stamp: BatchStamp): void {
  const head = batchField.attributes
  const before = crc32c(batch, head, batchHeaderSize)
  const attributes = readInt16(batch, head) & ~attributeBits.transactional
  writeInt16(batch, head, stamp.transactional ? attributes | attributeBits.transactional : attributes)
  writeBigInt64(batch, batchField.producerId, stamp.producerId)
  writeInt16(batch, batchField.producerEpoch, stamp.producerEpoch)
  writeInt32(batch, batchField.baseSequence, stamp.baseSequence)
  const after = crc32c(batch, head, batchHeaderSize)
  const crc = readInt32(batch, batchField.crc) >>> 0
  writeInt32(batch, batchField.crc, replacePrefix(crc, before, after, batch.length - batchHeaderSize))
}

/** Computes and sets the checksum of the one batch that `batch` is. */
export function sealBatch(batch: Uint8Array): void {
  writeInt32(batch, batchField.crc, crc32c(batch, batchField.attributes, batch.length))
}
