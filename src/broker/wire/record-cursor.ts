import { attributeBits, batchField, batchHeaderSize, batchSize, checksumHolds, compressionOf } from './batch-header.ts'
import { decompress } from './compression.ts'
import { damaged } from './corrupt.ts'
import { readBigInt64, readInt16, readInt32, readInt64 } from './integers.ts'
import { VarintReader } from './varint.ts'

/** A transaction of `producerId` that was aborted; its records begin at `firstOffset`. */
export interface AbortedRange {
  readonly producerId: bigint
  readonly firstOffset: number
}

export interface RecordCursorOptions {
  /** Whether the checksum of every batch is checked. On by default. */
  readonly verifyChecksums?: boolean
}

const noBytes = new Uint8Array(0)
const controlTypeOfAbort = 0

/**
 * Walks the records of whole batches, without an allocation per record. The fields describe the current record and stay
 * until the next `next()`; positions refer to `bytes`, which is the buffer given, or a batch's decompressed records.
 * Transaction markers, records below the asked offset and, for readers of committed records, those of aborted
 * transactions are passed over. A batch that is cut off at the end of the buffer ends the walk.
 */
export class RecordCursor {
  offset = -1
  timestamp = -1
  /** -1 where the key is null. */
  keyStart = -1
  keyEnd = -1
  /** -1 where the value is null. */
  valueStart = -1
  valueEnd = -1
  /** The headers with their count, as `decodeHeaders` and `RecordBatchBuilder` take them; an empty range for none. */
  headersStart = 0
  headersEnd = 0
  headerCount = 0
  bytes: Uint8Array = noBytes
  /** The same memory, for reading several bytes at once. */
  view = viewOf(noBytes)
  /**
   * The offset after the current record. Once `next()` has answered false: the offset after everything that was passed,
   * markers, aborted and compacted-away records included, and hence where the next fetch begins.
   */
  position = 0

  readonly #verify: boolean
  readonly #reader = new VarintReader(noBytes)
  readonly #abortedProducers = new Set<bigint>()
  #source: Uint8Array = noBytes
  #nextBatch = 0
  #from = 0
  #aborted: readonly AbortedRange[] = []
  #abortedNext = 0
  #committedOnly = false
  #left = 0
  #baseOffset = 0
  #lastOffsetDelta = 0
  #afterBatch = 0
  #baseTimestamp = 0
  #appendTime = false

  constructor(options: RecordCursorOptions = {}) {
    this.#verify = options.verifyChecksums ?? true
  }

  /** Begins before the first record at or after `fromOffset`. `aborted` is what the fetch answered with. */
  reset(
    records: Uint8Array,
    fromOffset: number,
    aborted: readonly AbortedRange[],
    isolation: 'read_committed' | 'read_uncommitted',
  ): void {
    this.#source = records
    this.#nextBatch = 0
    this.#from = fromOffset
    this.#aborted = isSorted(aborted) ? aborted : [...aborted].sort((a, b) => a.firstOffset - b.firstOffset)
    this.#abortedNext = 0
    this.#abortedProducers.clear()
    this.#committedOnly = isolation === 'read_committed'
    this.#left = 0
    this.#afterBatch = fromOffset
    this.position = fromOffset
    this.offset = -1
    if (records.length > 0) return
    // Nothing will be read any more: the bytes of before are let go.
    this.bytes = noBytes
    this.view = viewOf(noBytes)
    this.#reader.bytes = noBytes
    this.#reader.end = 0
  }

  /** Moves to the next record; false when there is none. Throws `CorruptBatchError` on damaged bytes. */
  next(): boolean {
    do {
      while (this.#left === 0) if (!this.#enterBatch()) return false
      this.#left--
      this.#readRecord()
    } while (this.offset < this.#from)
    this.position = this.offset + 1
    return true
  }

  #readRecord(): void {
    const reader = this.#reader
    const length = reader.next()
    const end = reader.at + length
    if (!(length >= 0 && end <= reader.end)) throw damaged(this.#baseOffset)
    reader.at++
    const timestampDelta = reader.next()
    const offsetDelta = reader.next()
    if (!(!Number.isNaN(timestampDelta) && offsetDelta >= 0 && offsetDelta <= this.#lastOffsetDelta)) {
      throw damaged(this.#baseOffset)
    }
    this.offset = this.#baseOffset + offsetDelta
    this.timestamp = this.#appendTime ? this.#baseTimestamp : this.#baseTimestamp + timestampDelta
    const keyLength = reader.next()
    this.keyStart = keyLength < 0 ? -1 : reader.at
    if (keyLength > 0) reader.at += keyLength
    this.keyEnd = keyLength < 0 ? -1 : reader.at
    const valueLength = reader.next()
    this.valueStart = valueLength < 0 ? -1 : reader.at
    if (valueLength > 0) reader.at += valueLength
    this.valueEnd = valueLength < 0 ? -1 : reader.at
    const headersStart = reader.at
    const headerCount = reader.next()
    // A length that could not be read is NaN and was passed over above: it fails here, with the position unmoved.
    if (!(headerCount >= 0 && keyLength >= -1 && valueLength >= -1 && reader.at <= end)) throw damaged(this.#baseOffset)
    this.headerCount = headerCount
    this.headersStart = headerCount === 0 ? end : headersStart
    this.headersEnd = end
    reader.at = end
  }

  /** Enters the next batch that may hold records to show; true also for one that turns out to be empty or skipped. */
  #enterBatch(): boolean {
    if (this.#afterBatch > this.position) this.position = this.#afterBatch
    const source = this.#source
    const at = this.#nextBatch
    const size = batchSize(source, at)
    if (size < 0) return false
    this.#nextBatch = at + size
    const baseOffset = readInt64(source, at + batchField.baseOffset)
    const lastOffsetDelta = readInt32(source, at + batchField.lastOffsetDelta)
    const count = readInt32(source, at + batchField.recordCount)
    if (lastOffsetDelta < 0 || count < 0 || baseOffset < 0) throw damaged(baseOffset)
    const after = baseOffset + lastOffsetDelta + 1
    if (after > this.#afterBatch) this.#afterBatch = after
    if (this.#verify && !checksumHolds(source, at, size)) throw damaged(baseOffset)
    const attributes = readInt16(source, at + batchField.attributes)
    if (this.#committedOnly && attributes & attributeBits.transactional) {
      if (this.#isAborted(at, size, after - 1, (attributes & attributeBits.control) !== 0)) return true
    }
    if (attributes & attributeBits.control || after <= this.#from) return true
    this.#baseOffset = baseOffset
    this.#lastOffsetDelta = lastOffsetDelta
    this.#appendTime = (attributes & attributeBits.logAppendTime) !== 0
    this.#baseTimestamp = readInt64(
      source,
      at + (this.#appendTime ? batchField.maxTimestamp : batchField.baseTimestamp),
    )
    this.#open(source, at, size, attributes)
    this.#left = count
    return true
  }

  #open(source: Uint8Array, at: number, size: number, attributes: number): void {
    const compression = compressionOf(attributes)
    const reader = this.#reader
    if (compression === 'none') {
      reader.bytes = source
      reader.at = at + batchHeaderSize
      reader.end = at + size
    } else {
      reader.bytes = decompress(compression, source.subarray(at + batchHeaderSize, at + size))
      reader.at = 0
      reader.end = reader.bytes.length
    }
    if (this.bytes === reader.bytes) return
    this.bytes = reader.bytes
    this.view = viewOf(reader.bytes)
  }

  /** Follows the aborted transactions over the batch, a transactional one; true if its records do not count. */
  #isAborted(at: number, size: number, lastOffset: number, control: boolean): boolean {
    const aborted = this.#aborted
    while (this.#abortedNext < aborted.length) {
      const range = aborted[this.#abortedNext] as AbortedRange
      if (range.firstOffset > lastOffset) break
      this.#abortedProducers.add(range.producerId)
      this.#abortedNext++
    }
    if (this.#abortedProducers.size === 0) return false
    const producerId = readBigInt64(this.#source, at + batchField.producerId)
    if (!this.#abortedProducers.has(producerId)) return false
    if (control && controlType(this.#source, at, size) === controlTypeOfAbort) {
      this.#abortedProducers.delete(producerId)
    }
    return true
  }
}

/** The type in a control batch's only record: 0 aborts, 1 commits. */
export function controlType(bytes: Uint8Array, at: number, size: number): number {
  const reader = new VarintReader(bytes, at + batchHeaderSize, at + size)
  reader.next()
  reader.at++
  reader.next()
  reader.next()
  const keyLength = reader.next()
  if (!(keyLength >= 4 && reader.at + keyLength <= reader.end)) throw damaged(readInt64(bytes, at))
  return readInt16(bytes, reader.at + 2)
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength)
}

function isSorted(ranges: readonly AbortedRange[]): boolean {
  for (let i = 1; i < ranges.length; i++) {
    if ((ranges[i] as AbortedRange).firstOffset < (ranges[i - 1] as AbortedRange).firstOffset) return false
  }
  return true
}
