/** The log of one partition: batches in segments, who wrote them, and which transactions are open or aborted. */
import { assert } from '../../../base/assert.ts'
import { attributeBits, batchField, sealBatch, setLeaderEpoch } from '../../wire/batch-header.ts'
import { writeInt16 } from '../../wire/integers.ts'
import {
  type BatchHeader,
  batchHeader,
  batchHeaderSize,
  batchSize,
  CorruptBatchError,
  checksumHolds,
  RecordBatchBuilder,
  setBaseOffset,
  stampBatch,
} from '../../wire/record-batch.ts'
import { type AbortedTransaction, BrokerError } from '../../port.ts'
import { type LogRules, recoverSegment } from './log-recovery.ts'
import { OffsetIndex } from './offset-index.ts'
import { admit, ProducerState } from './producer-state.ts'
import type { PartitionFiles, SegmentFile } from './storage.ts'

export interface Segment {
  readonly file: SegmentFile
  readonly index: OffsetIndex
  /** Greatest timestamp of its records, for retention by time. */
  maxTimestamp: number
}

/** The end of a transaction has the time at which it came, which says nothing of how old the records are. */
function noteTime(segment: Segment, { control, maxTimestamp }: BatchHeader): void {
  if (!control && maxTimestamp > segment.maxTimestamp) segment.maxTimestamp = maxTimestamp
}

export interface OpenTransaction {
  readonly firstOffset: number
  readonly epoch: number
}

interface Aborted extends AbortedTransaction {
  readonly lastOffset: number
}

interface Admitted {
  readonly header: BatchHeader
  readonly at: number
}

interface End {
  readonly producerId: bigint
  readonly epoch: number
  readonly commit: boolean
  readonly timestamp: number
}

interface Marker extends End {
  readonly bytes: Uint8Array
  readonly header: BatchHeader
}

const markers = new RecordBatchBuilder()
let lastMarker: Marker | undefined

/** One transaction ends in the same way in all of its partitions: but for the offset the markers are the same. */
function markerOf({ producerId, epoch, commit, timestamp }: End): Marker {
  const last = lastMarker
  const isSame = last?.producerId === producerId && last.epoch === epoch && last.timestamp === timestamp
  if (isSame && last.commit === commit) return last
  markers.append(timestamp, Uint8Array.of(0, 0, 0, commit ? 1 : 0), Uint8Array.of(0, 0, 0, 0, 0, 0), [])
  const bytes = markers.finish()
  setLeaderEpoch(bytes, 0)
  stampBatch(bytes, { producerId, producerEpoch: epoch, baseSequence: -1, transactional: true })
  writeInt16(bytes, batchField.attributes, attributeBits.transactional | attributeBits.control)
  sealBatch(bytes)
  lastMarker = { producerId, epoch, commit, timestamp, bytes, header: batchHeader(bytes) }
  return lastMarker
}

const none = new Uint8Array(0)

export class PartitionLog {
  readonly files: PartitionFiles
  readonly #segmentBytes: number
  segments: Segment[] = []
  readonly producers = new Map<bigint, ProducerState>()
  /** By producer id, oldest first. */
  readonly open = new Map<bigint, OpenTransaction>()
  aborted: Aborted[] = []
  logStart = 0
  #end = 0
  readonly #head = new Uint8Array(batchHeaderSize)

  constructor(files: PartitionFiles, segmentBytes: number, rules: LogRules) {
    this.files = files
    this.#segmentBytes = segmentBytes
    const found = files.list()
    found.forEach((file, i) => {
      recoverSegment(this, file, i === found.length - 1, rules)
    })
    this.logStart = this.segments[0]?.file.baseOffset ?? 0
  }

  get highWatermark(): number {
    return this.#end
  }

  get lastStableOffset(): number {
    let least = this.#end
    for (const { firstOffset } of this.open.values()) if (firstOffset < least) least = firstOffset
    return least
  }

  get bytes(): number {
    return this.segments.reduce((sum, { file }) => sum + file.size, 0)
  }

  /**
   * Appends whole batches, whose bytes the log takes over; all of them, or none and an error. Answers the offset of the
   * first. Batches that are there already are acknowledged and not written again.
   */
  append(records: Uint8Array, maxBatchBytes: number): number {
    const admitted: Admitted[] = []
    const tentative = new Map<bigint, ProducerState>()
    let baseOffset = -1
    let next = this.#end
    for (let at = 0; at < records.length; ) {
      const header = checkedHeader(records, at, maxBatchBytes)
      const repeated = this.#admit(header, tentative, next)
      if (baseOffset < 0) baseOffset = repeated ?? next
      if (repeated === undefined) {
        setBaseOffset(records, next, at)
        setLeaderEpoch(records, 0, at)
        admitted.push({ header, at })
        next += header.lastOffset - header.baseOffset + 1
      }
      at += header.size
    }
    this.#write(records, admitted)
    assert(this.#end === next, `the log ends at ${this.#end} behind a write that went up to ${next}`)
    for (const [producerId, state] of tentative) this.producers.set(producerId, state)
    return baseOffset
  }

  /** Ends the producer's transaction here. Answers false where it has none open: nothing is written then. */
  endTransaction(producerId: bigint, epoch: number, commit: boolean, timestamp: number): boolean {
    const transaction = this.open.get(producerId)
    if (transaction === undefined) return false
    const marker = markerOf({ producerId, epoch, commit, timestamp })
    setBaseOffset(marker.bytes, this.#end)
    const header = { ...marker.header, baseOffset: this.#end, lastOffset: this.#end }
    const segment = this.#activeSegment()
    const position = segment.file.size
    segment.file.append(marker.bytes.slice())
    segment.index.add(this.#end, position)
    this.noteMarker(header, commit)
    return true
  }

  /**
   * Whole batches from the one that holds `from`, below `limit`. With `atLeastOne` the first comes also where it is
   * longer than `maxBytes`.
   */
  read(from: number, limit: number, maxBytes: number, atLeastOne: boolean): Uint8Array {
    if (from >= limit) return none
    let i = this.segments.length - 1
    while (i > 0 && (this.segments[i] as Segment).file.baseOffset > from) i--
    for (; i < this.segments.length; i++) {
      const segment = this.segments[i] as Segment
      const start = this.#seek(segment, from)
      if (start >= segment.file.size) continue
      const end = this.#endOfRead(segment, start, limit, maxBytes, atLeastOne)
      if (end === start) return none
      const bytes = new Uint8Array(end - start)
      segment.file.copy(start, bytes, 0, bytes.length)
      return bytes
    }
    return none
  }

  /** Aborted transactions with records in `[from, to)`. */
  abortedBetween(from: number, to: number): AbortedTransaction[] {
    return this.aborted
      .filter((a) => a.lastOffset >= from && a.firstOffset < to)
      .map(({ producerId, firstOffset }) => ({ producerId, firstOffset }))
  }

  /** Cuts everything from `offset` on, a write that was never acknowledged. */
  truncate(offset: number): void {
    if (offset >= this.#end) return
    assert(offset >= this.logStart, `the log is cut at ${offset}, before it begins`)
    while (this.segments.length > 0 && (this.segments.at(-1) as Segment).file.baseOffset >= offset) {
      this.files.remove((this.segments.pop() as Segment).file)
    }
    const last = this.segments.at(-1)
    if (last !== undefined) {
      const size = this.#seek(last, offset)
      last.file.truncate(size)
      last.index.truncate(size)
    }
    this.#end = offset
  }

  /** Puts compacted content in the place of the first segments, which end before `end`. */
  replaceFirst(count: number, content: readonly Uint8Array[], end: number): void {
    assert(count < this.segments.length, 'the segment that is written to is not compacted')
    assert(end <= this.#end, `the log is compacted up to ${end}, and ends at ${this.#end}`)
    const old = this.segments.slice(0, count)
    const file = this.files.replace(
      old.map((segment) => segment.file),
      content,
    )
    const segment: Segment = { file, index: new OffsetIndex(), maxTimestamp: -1 }
    let position = 0
    for (const bytes of content) {
      const header = batchHeader(bytes)
      segment.index.add(header.baseOffset, position)
      noteTime(segment, header)
      position += bytes.length
    }
    this.segments.splice(0, count, segment)
    // What was aborted before `end` is gone from the log; later records of a transaction may still be there.
    this.aborted = this.aborted.filter((a) => a.lastOffset >= end)
  }

  /** Deletes the first segment; the log then begins with the next. */
  dropFirst(): void {
    const [first, next] = this.segments
    if (first === undefined || next === undefined) return
    this.files.remove(first.file)
    this.segments.shift()
    assert(next.file.baseOffset > this.logStart, 'a log that loses its first segment begins later')
    this.logStart = next.file.baseOffset
    this.aborted = this.aborted.filter((a) => a.lastOffset >= this.logStart)
  }

  /** Starts a new segment, so that all before it may be compacted or deleted. */
  roll(): void {
    if ((this.segments.at(-1)?.file.size ?? 0) > 0) this.#startSegment()
  }

  addSegment(file: SegmentFile): Segment {
    const last = this.segments.at(-1)
    assert(last === undefined || file.baseOffset >= last.file.baseOffset, 'segments follow one another')
    const segment = { file, index: new OffsetIndex(), maxTimestamp: -1 }
    this.segments.push(segment)
    return segment
  }

  noteBatch(header: BatchHeader, baseOffset: number, segment: Segment, position: number): void {
    assert(baseOffset >= this.#end, `a batch at offset ${baseOffset} comes behind the end at ${this.#end}`)
    segment.index.add(baseOffset, position)
    noteTime(segment, header)
    this.#end = baseOffset + (header.lastOffset - header.baseOffset) + 1
    if (header.producerId < 0n || header.control) return
    if (header.transactional && !this.open.has(header.producerId)) {
      this.open.set(header.producerId, { firstOffset: baseOffset, epoch: header.producerEpoch })
    }
  }

  noteMarker(header: BatchHeader, commit: boolean): void {
    const transaction = this.open.get(header.producerId)
    this.open.delete(header.producerId)
    const offset = header.baseOffset
    assert(offset >= this.#end - 1, `a transaction ends at offset ${offset} of a log that goes up to ${this.#end}`)
    if (!commit && transaction !== undefined) {
      const { firstOffset } = transaction
      this.aborted.push({ producerId: header.producerId, firstOffset, lastOffset: offset })
    }
    const state = this.producers.get(header.producerId)
    if (state === undefined) this.producers.set(header.producerId, new ProducerState(header.producerEpoch))
    else state.marked(header.producerEpoch)
    if (offset >= this.#end) this.#end = offset + 1
  }

  #admit(header: BatchHeader, tentative: Map<bigint, ProducerState>, offset: number): number | undefined {
    const { producerId } = header
    if (producerId < 0n) return undefined
    let state = tentative.get(producerId) ?? this.producers.get(producerId)?.clone()
    const repeated = admit(state, header)
    if (repeated !== undefined) return repeated
    if (!header.transactional && this.open.has(producerId)) {
      throw new BrokerError(
        'INVALID_TXN_STATE',
        `Producer ${producerId} wrote outside its transaction while that is open.`,
      )
    }
    state ??= new ProducerState(header.producerEpoch)
    state.record(header, offset)
    tentative.set(producerId, state)
    return undefined
  }

  #write(records: Uint8Array, admitted: readonly Admitted[]): void {
    if (admitted.length === 0) return
    const segment = this.#activeSegment()
    let position = segment.file.size
    // In one write: a disk takes all of them or none.
    segment.file.append(together(records, admitted))
    for (const { header } of admitted) {
      this.noteBatch(header, this.#end, segment, position)
      position += header.size
    }
  }

  #activeSegment(): Segment {
    const last = this.segments.at(-1)
    return last === undefined || last.file.size >= this.#segmentBytes ? this.#startSegment() : last
  }

  #startSegment(): Segment {
    return this.addSegment(this.files.create(this.#end))
  }

  /** Position of the first batch that ends at or after `offset`. */
  #seek(segment: Segment, offset: number): number {
    let position = segment.index.byOffset(offset)
    while (position < segment.file.size) {
      const header = this.#headerAt(segment.file, position)
      if (header.lastOffset >= offset) break
      position += header.size
    }
    return position
  }

  #endOfRead(segment: Segment, start: number, limit: number, maxBytes: number, atLeastOne: boolean): number {
    const { file, index } = segment
    const allowed = start + maxBytes
    let end = Math.max(start, Math.min(index.byPosition(Math.min(allowed, file.size)), index.byOffset(limit)))
    while (end < file.size) {
      const header = this.#headerAt(file, end)
      if (header.baseOffset >= limit || (end + header.size > allowed && (end > start || !atLeastOne))) break
      end += header.size
    }
    return end
  }

  #headerAt(file: SegmentFile, position: number): { size: number; baseOffset: number; lastOffset: number } {
    const head = this.#head
    file.copy(position, head, 0, batchHeaderSize)
    return peekHeader(head)
  }
}

/** The bytes of these batches, without those that lie between them. */
function together(records: Uint8Array, admitted: readonly Admitted[]): Uint8Array {
  const bytes = admitted.reduce((sum, { header }) => sum + header.size, 0)
  if (bytes === records.length) return records
  const pieces = admitted.map(({ header, at }) => records.subarray(at, at + header.size))
  const [first] = admitted
  const last = admitted.at(-1)
  if (first === undefined || last === undefined) return none
  const isOneRun = last.at + last.header.size - first.at === bytes
  return isOneRun ? records.subarray(first.at, first.at + bytes) : new Uint8Array(Buffer.concat(pieces))
}

function peekHeader(head: Uint8Array): { size: number; baseOffset: number; lastOffset: number } {
  const view = new DataView(head.buffer, head.byteOffset, head.length)
  const baseOffset = Number(view.getBigInt64(batchField.baseOffset))
  return {
    size: view.getInt32(batchField.length) + 12,
    baseOffset,
    lastOffset: baseOffset + view.getInt32(batchField.lastOffsetDelta),
  }
}

function checkedHeader(records: Uint8Array, at: number, maxBatchBytes: number): BatchHeader {
  try {
    const size = batchSize(records, at)
    if (size < 0) throw new CorruptBatchError('A record batch is cut off.')
    if (size > maxBatchBytes) {
      throw new BrokerError(
        'MESSAGE_TOO_LARGE',
        `A record batch of ${size} bytes is above the topic's max.message.bytes of ${maxBatchBytes}.`,
      )
    }
    if (!checksumHolds(records, at, size)) throw new CorruptBatchError('The checksum of a record batch is wrong.')
    const header = batchHeader(records, at)
    if (header.recordCount <= 0 || header.lastOffset - header.baseOffset + 1 !== header.recordCount) {
      throw new BrokerError('INVALID_RECORD', 'A record batch gives its number of records wrongly.')
    }
    if (header.control) throw new BrokerError('INVALID_RECORD', 'A producer may not write transaction markers.')
    return header
  } catch (error) {
    if (error instanceof CorruptBatchError) throw new BrokerError(error.code, error.message, undefined, error)
    throw error
  }
}
