import { batchField, batchHeaderSize, sealBatch } from './batch-header.ts'
import { encodeHeaders } from './header-codec.ts'
import type { Headers } from './headers.ts'
import { writeBigInt64, writeInt16, writeInt32, writeInt64 } from './integers.ts'
import { varintSize, writeVarint } from './varint.ts'

const firstCapacity = 4096
const keptCapacity = 64 * 1024
/** Room for the varints of one record: length, timestamp, offset, two lengths and the count of headers. */
const varintRoom = 64
const empty = new Uint8Array(0)

/**
 * Builds one uncompressed record batch after the other. `finish` gives a batch that a broker takes as it is, without a
 * producer's identity; `stampBatch` sets one. Offsets begin at 0: the broker assigns the real ones.
 */
export class RecordBatchBuilder {
  #bytes = new Uint8Array(firstCapacity)
  #length = batchHeaderSize
  #count = 0
  #baseTimestamp = 0
  #maxTimestamp = 0
  /** As it was before the last record. */
  #maxBefore = 0
  /** Bytes of the last record's length. */
  #lengthSize = 1
  #lastHeaders: Headers | undefined
  #lastHeaderBytes: Uint8Array = empty

  /** Records appended since the last `finish`. */
  get count(): number {
    return this.#count
  }

  /** Size of the batch as it stands, header included. */
  get bytes(): number {
    return this.#length
  }

  /** `headers` as a list, or as the bytes that `encodeHeaders` and `RecordCursor` give (their count included). */
  append(timestamp: number, key: Uint8Array | null, value: Uint8Array | null, headers: Headers | Uint8Array): void {
    this.appendFrom(timestamp, key, 0, key === null ? 0 : key.length, value, headers)
  }

  /** As `append`; the key is what lies in these bytes between `keyStart` and `keyEnd`. */
  appendFrom(
    timestamp: number,
    key: Uint8Array | null,
    keyStart: number,
    keyEnd: number,
    value: Uint8Array | null,
    headers: Headers | Uint8Array,
  ): void {
    const count = this.#count
    if (count === 0) {
      this.#baseTimestamp = timestamp
      this.#maxTimestamp = timestamp
    } else {
      this.#maxBefore = this.#maxTimestamp
      if (timestamp > this.#maxTimestamp) this.#maxTimestamp = timestamp
    }
    const timestampDelta = timestamp - this.#baseTimestamp
    const keyLength = key === null ? -1 : keyEnd - keyStart
    const valueLength = value === null ? -1 : value.length
    const headerBytes = headers.length === 0 ? empty : this.#headerBytes(headers)
    const most = Math.max(keyLength, 0) + Math.max(valueLength, 0) + headerBytes.length + varintRoom
    const start = this.#length
    if (start + most > this.#bytes.length) this.#grow(start + most)
    const bytes = this.#bytes
    // Its length is known at the end: room is left for as many bytes as that of the record before took.
    const room = this.#lengthSize
    const body = start + room
    let at = body
    bytes[at++] = 0
    at = put(bytes, at, timestampDelta)
    at = put(bytes, at, count)
    at = put(bytes, at, keyLength)
    if (key !== null) at = copyRange(bytes, at, key, keyStart, keyEnd)
    at = put(bytes, at, valueLength)
    if (value !== null) at = copy(bytes, at, value)
    if (headerBytes.length === 0) bytes[at++] = 0
    else at = copy(bytes, at, headerBytes)
    const length = at - body
    const lengthSize = varintSize(length)
    if (lengthSize !== room) {
      bytes.copyWithin(start + lengthSize, body, at)
      this.#lengthSize = lengthSize
    }
    put(bytes, start, length)
    at = start + lengthSize + length
    this.#length = at
    this.#count = count + 1
  }

  /** Takes the last record back; `bytes` is what the batch had without it. */
  dropLast(bytes: number): void {
    this.#length = bytes
    this.#count--
    this.#maxTimestamp = this.#maxBefore
  }

  /** The batch, in a buffer of its own that may be handed to another thread. The builder is empty afterwards. */
  finish(): Uint8Array<ArrayBuffer> {
    const batch = new Uint8Array(this.#length)
    this.finishInto(batch, 0)
    return batch
  }

  /** As `finish`, into memory that the caller has: `bytes` of it from `at` on. */
  finishInto(target: Uint8Array<ArrayBuffer>, at: number): void {
    const length = this.#length
    target.set(this.#bytes.subarray(0, length), at)
    const batch = at === 0 && target.length === length ? target : target.subarray(at, at + length)
    writeInt32(batch, batchField.length, length - 12)
    writeInt32(batch, batchField.leaderEpoch, -1)
    batch[batchField.magic] = 2
    writeInt32(batch, batchField.lastOffsetDelta, this.#count - 1)
    writeInt64(batch, batchField.baseTimestamp, this.#baseTimestamp)
    writeInt64(batch, batchField.maxTimestamp, this.#maxTimestamp)
    writeBigInt64(batch, batchField.producerId, -1n)
    writeInt16(batch, batchField.producerEpoch, -1)
    writeInt32(batch, batchField.baseSequence, -1)
    writeInt32(batch, batchField.recordCount, this.#count)
    sealBatch(batch)
    this.#length = batchHeaderSize
    this.#count = 0
    // There is a builder for each partition: large batches of some time ago must not make all of them hold that much.
    const capacity = this.#bytes.length
    if (capacity > keptCapacity && length < capacity >> 2) this.#bytes = new Uint8Array(capacity >> 1)
  }

  /** The same list of headers often goes with many records in a row: it is encoded once. */
  #headerBytes(headers: Headers | Uint8Array): Uint8Array {
    if (headers instanceof Uint8Array) return headers
    if (headers !== this.#lastHeaders) {
      this.#lastHeaderBytes = encodeHeaders(headers)
      this.#lastHeaders = headers
    }
    return this.#lastHeaderBytes
  }

  #grow(needed: number): void {
    const bytes = new Uint8Array(Math.max(needed, this.#bytes.length * 2))
    bytes.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = bytes
  }
}

/** As `writeVarint`, with the numbers of nearly every record at hand: of one byte or two. */
function put(bytes: Uint8Array, at: number, value: number): number {
  if (value >= 0 && value < 64) {
    bytes[at] = value << 1
    return at + 1
  }
  if (value >= 64 && value < 8192) {
    bytes[at] = ((value << 1) & 0x7f) | 0x80
    bytes[at + 1] = value >> 6
    return at + 2
  }
  return writeVarint(bytes, at, value)
}

function copy(target: Uint8Array, at: number, source: Uint8Array): number {
  const length = source.length
  // A short copy by hand is cheaper than the call.
  if (length <= 24) for (let i = 0; i < length; i++) target[at + i] = source[i] as number
  else target.set(source, at)
  return at + length
}

function copyRange(target: Uint8Array, at: number, source: Uint8Array, start: number, end: number): number {
  const length = end - start
  if (length > 24) target.set(source.subarray(start, end), at)
  else for (let i = 0; i < length; i++) target[at + i] = source[start + i] as number
  return at + length
}
