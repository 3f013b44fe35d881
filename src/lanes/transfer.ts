/**
 * Records on their way between threads: packed into one buffer that is handed over, never copied again. An entry is a
 * fixed head of aligned numbers, then key, value and headers as they lie in record batches, padded to eight bytes.
 */
import { assert } from '../base/assert.ts'
import { isBefore, type Place } from './levels/place.ts'

const headInts = 8
/**
 * Bytes of an entry's head, by how much of its place it carries: heads are a third of what goes between threads. Records
 * that no lane hands on need no number of their dispatch; what the engine dispatches is no hand-off of anything.
 */
export const heads = { unnumbered: 64, dispatched: 72, handedOver: 80 } as const
export type HeadBytes = (typeof heads)[keyof typeof heads]
/** Longer ranges are left to the platform; from so many bytes on they are copied by eight. */
const longCopy = 256
const shortCopy = 32
const manyBytes = 16
/** A value that is no longer may say that there is none (`Serde.nullBytes`): it is sent along also where nobody reads values. */
export const mostNullBytes = 8
/** A buffer that is filled no further than this part (a power of two) is copied instead of handed over. */
const smallShift = 3

/** Memory of its own, as it comes: all that is read of it was written before. */
function blank(bytes: number): ArrayBuffer {
  return Buffer.allocUnsafeSlow(bytes).buffer
}

/** Where the parts of a record lie among other bytes; a start of -1: that part is null. */
export interface LyingRecord {
  readonly offset: number
  readonly bytes: Uint8Array
  readonly view: DataView
  readonly keyStart: number
  readonly keyEnd: number
  readonly valueStart: number
  readonly valueEnd: number
  readonly headersStart: number
  readonly headersEnd: number
}

/** Packs records into buffers of a given size. */
export class TransferWriter {
  readonly #capacity: number
  readonly head: HeadBytes
  /** Where the last entry begins. */
  #last = 0
  #bytes: Uint8Array
  #ints: Int32Array
  #doubles: Float64Array
  #view: DataView
  /** Where a range was copied from last, as the next one mostly is, and the view of it. */
  #from: Uint8Array | undefined
  #fromView: DataView | undefined
  #length = 0
  #records = 0
  /** The place of the entry appended last; entries that come after it keep the buffer in order. */
  at = Number.NEGATIVE_INFINITY
  seq = Number.NEGATIVE_INFINITY
  sub = 0
  isInOrder = true

  constructor(capacity = 65_536, head: HeadBytes = heads.handedOver) {
    this.#capacity = capacity
    this.head = head
    const buffer = blank(capacity)
    this.#bytes = new Uint8Array(buffer)
    this.#ints = new Int32Array(buffer)
    this.#doubles = new Float64Array(buffer)
    this.#view = new DataView(buffer)
  }

  get length(): number {
    return this.#length
  }

  get records(): number {
    return this.#records
  }

  /**
   * Appends one record. Key, value and headers are ranges of `from*` buffers; a start of -1 is null.
   * `origin` numbers: topic index, partition, offset of the source record; `at`, `seq` and `sub` are its place.
   */
  append(
    source: number,
    task: number,
    originTopic: number,
    originPartition: number,
    offset: number,
    timestamp: number,
    watermark: number,
    key: Uint8Array | null,
    keyStart: number,
    keyEnd: number,
    value: Uint8Array | null,
    valueStart: number,
    valueEnd: number,
    headers: Uint8Array | null,
    headersStart: number,
    headersEnd: number,
    at: number,
    seq: number,
    sub: number,
  ): void {
    const keyLength = key === null || keyStart < 0 ? -1 : keyEnd - keyStart
    const valueLength = value === null || valueStart < 0 ? -1 : valueEnd - valueStart
    const headersLength = headers === null ? 0 : headersEnd - headersStart
    let to = this.#begin(source, task, originTopic, originPartition, keyLength, valueLength, headersLength)
    this.#time(offset, timestamp, watermark)
    this.#place(at, seq, sub)
    if (keyLength > 0) to = this.#copyFrom(to, key as Uint8Array, keyStart, keyLength)
    if (valueLength > 0) to = this.#copyFrom(to, value as Uint8Array, valueStart, valueLength)
    if (headersLength > 0) this.#copyFrom(to, headers as Uint8Array, headersStart, headersLength)
  }

  /** A short copy by hand is several times cheaper than a call that makes a view first. */
  #copyFrom(to: number, from: Uint8Array, start: number, length: number): number {
    const bytes = this.#bytes
    if (length <= shortCopy) for (let i = 0; i < length; i++) bytes[to + i] = from[start + i] as number
    else if (length === from.length) bytes.set(from, to)
    else if (length > longCopy) bytes.set(from.subarray(start, start + length), to)
    else return this.#copy(to, this.#viewOf(from), start, length)
    return to + length
  }

  #viewOf(from: Uint8Array): DataView {
    if (this.#from === from && this.#fromView !== undefined) return this.#fromView
    this.#from = from
    this.#fromView = new DataView(from.buffer, from.byteOffset, from.length)
    return this.#fromView
  }

  #place(at: number, seq: number, sub: number): void {
    const d = this.#last >> 3
    const head = this.head
    this.#doubles[d + 7] = at
    if (head > heads.unnumbered) this.#doubles[d + 8] = seq
    if (head === heads.handedOver) this.#doubles[d + 9] = sub
    if (this.isInOrder && isBefore(at, seq, sub, this)) this.isInOrder = false
    this.at = at
    this.seq = seq
    this.sub = sub
  }

  /**
   * Appends the record at which the cursor stands; its watermark and its place are told afterwards. Not `withValue`: an
   * empty value stands for one, save for what may say that there is none. Returns the bytes of key, value and headers as they lie at the cursor.
   */
  appendFrom(
    cursor: LyingRecord,
    source: number,
    task: number,
    originTopic: number,
    originPartition: number,
    timestamp: number,
    withValue = true,
  ): number {
    const { view, keyStart, valueStart, headersStart } = cursor
    const keyLength = keyStart < 0 ? -1 : cursor.keyEnd - keyStart
    const wholeValue = valueStart < 0 ? -1 : cursor.valueEnd - valueStart
    const valueLength = withValue || wholeValue <= mostNullBytes ? wholeValue : Math.min(wholeValue, 0)
    const headersLength = cursor.headersEnd - headersStart
    let at = this.#begin(source, task, originTopic, originPartition, keyLength, valueLength, headersLength)
    this.#time(cursor.offset, timestamp, 0)
    if (keyLength > 0) at = this.#copy(at, view, keyStart, keyLength)
    if (valueLength > 0) at = this.#copy(at, view, valueStart, valueLength)
    if (headersLength > 0) this.#copy(at, view, headersStart, headersLength)
    return Math.max(keyLength, 0) + Math.max(wholeValue, 0) + headersLength
  }

  /** Writes the whole numbers of an entry's head; where its bytes begin. */
  #begin(
    source: number,
    task: number,
    originTopic: number,
    originPartition: number,
    keyLength: number,
    valueLength: number,
    headersLength: number,
  ): number {
    const payload = Math.max(keyLength, 0) + Math.max(valueLength, 0) + headersLength
    const head = this.head
    const size = (head + payload + 7) & ~7
    const from = this.#length
    if (from + size > this.#bytes.length) this.#grow(from + size)
    const i = from >> 2
    const ints = this.#ints
    ints[i] = size
    ints[i + 1] = source
    ints[i + 2] = task
    ints[i + 3] = originTopic
    ints[i + 4] = originPartition
    ints[i + 5] = keyLength
    ints[i + 6] = valueLength
    ints[i + 7] = headersLength
    this.#last = from
    this.#length = from + size
    this.#records++
    return from + head
  }

  #time(offset: number, timestamp: number, watermark: number): void {
    const d = this.#last >> 3
    this.#doubles[d + 4] = offset
    this.#doubles[d + 5] = timestamp
    this.#doubles[d + 6] = watermark
  }

  /** Most copies are short: by words, here, they take a third of what a call into the platform does. */
  #copy(at: number, source: DataView, from: number, length: number): number {
    if (length > longCopy) {
      this.#bytes.set(new Uint8Array(source.buffer, source.byteOffset + from, length), at)
      return at + length
    }
    const view = this.#view
    let i = 0
    // V8 keeps these in registers: no number is allocated. For a key of a few bytes they do not pay.
    if (length >= manyBytes) {
      const long = length & ~7
      for (; i < long; i += 8) view.setBigInt64(at + i, source.getBigInt64(from + i, true), true)
    }
    const words = length & ~3
    for (; i < words; i += 4) view.setInt32(at + i, source.getInt32(from + i, true), true)
    for (; i < length; i++) view.setUint8(at + i, source.getUint8(from + i))
    return at + length
  }

  /** Of the entry dispatched last: the engine knows its watermark only once the record has left its buffer. */
  setLast(watermark: number, at: number, seq: number): void {
    const d = this.#last >> 3
    const doubles = this.#doubles
    doubles[d + 6] = watermark
    doubles[d + 7] = at
    if (this.head > heads.unnumbered) doubles[d + 8] = seq
  }

  /** The packed buffer, whose length may exceed what was written; the writer goes on with a fresh one. */
  take(): ArrayBuffer {
    const taken = this.#length <= this.#capacity >> smallShift ? this.#copied() : this.#takenWhole()
    this.#length = 0
    this.#records = 0
    this.isInOrder = true
    this.at = Number.NEGATIVE_INFINITY
    this.seq = Number.NEGATIVE_INFINITY
    return taken
  }

  /** Of a little the bytes go alone: where little comes at a time, memory for much would cost more than all the rest. */
  #copied(): ArrayBuffer {
    const buffer = blank(this.#length)
    new Uint8Array(buffer).set(this.#bytes.subarray(0, this.#length))
    return buffer
  }

  #takenWhole(): ArrayBuffer {
    const taken = this.#bytes.buffer as ArrayBuffer
    const buffer = blank(this.#capacity)
    this.#bytes = new Uint8Array(buffer)
    this.#ints = new Int32Array(buffer)
    this.#doubles = new Float64Array(buffer)
    this.#view = new DataView(buffer)
    return taken
  }

  #grow(needed: number): void {
    const buffer = new ArrayBuffer(Math.max(needed + 4096, this.#bytes.length * 2) & ~7)
    const bytes = new Uint8Array(buffer)
    bytes.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = bytes
    this.#ints = new Int32Array(buffer)
    this.#doubles = new Float64Array(buffer)
    this.#view = new DataView(buffer)
  }
}

/** Walks the entries of a packed buffer; the fields describe the current one. */
export class TransferReader implements Place {
  readonly bytes: Uint8Array
  readonly #ints: Int32Array
  readonly #doubles: Float64Array
  readonly #end: number
  readonly #head: HeadBytes
  #next = 0
  source = 0
  task = 0
  originTopic = 0
  originPartition = 0
  offset = 0
  timestamp = 0
  watermark = 0
  at = 0
  seq = 0
  sub = 0
  /** Start of the key, or -1 for null. */
  keyStart = -1
  keyEnd = -1
  valueStart = -1
  valueEnd = -1
  headersStart = 0
  headersEnd = 0
  /** Where `look` stands: at a record further on, or before all of them. */
  #ahead = 0
  /** Where the entries lie, in their order, once they were sorted. */
  #order: Int32Array | undefined
  #nextInOrder = 0
  aheadSource = 0
  aheadTask = 0
  aheadKeyStart = -1
  aheadKeyEnd = -1

  /** `head`: as the entries were written; of what they do not carry, `seq` and `sub` are 0. */
  constructor(buffer: ArrayBuffer, length: number, head: HeadBytes = heads.handedOver) {
    this.#head = head
    this.bytes = new Uint8Array(buffer)
    this.#ints = new Int32Array(buffer)
    this.#doubles = new Float64Array(buffer)
    this.#end = length
  }

  /** No record was looked at further than `next` has come. */
  get isLevel(): boolean {
    return this.#next >= this.#ahead
  }

  /** Nothing is to be looked at in what is left. */
  lookNoFurther(): void {
    this.#ahead = this.#end
  }

  /** Shows the task and the key of the next record that was not looked at; `next` stays where it is. */
  look(): boolean {
    const from = this.#ahead
    if (from >= this.#end) return false
    const i = from >> 2
    const ints = this.#ints
    this.aheadSource = ints[i + 1] as number
    this.aheadTask = ints[i + 2] as number
    const keyLength = ints[i + 5] as number
    const keyStart = from + this.#head
    this.aheadKeyStart = keyLength < 0 ? -1 : keyStart
    this.aheadKeyEnd = keyStart + Math.max(keyLength, 0)
    this.#ahead = from + (ints[i] as number)
    return true
  }

  /** Puts the entries in the order of their places; those of one place keep theirs. */
  sort(): void {
    assert(this.#head === heads.handedOver, 'entries without a whole place are to be sorted')
    const starts: number[] = []
    for (let at = 0; at < this.#end; at += this.#ints[at >> 2] as number) starts.push(at)
    const doubles = this.#doubles
    const place = (from: number, field: number): number => doubles[(from >> 3) + field] as number
    starts.sort(
      (a, b) =>
        compare(place(a, 7), place(b, 7)) ||
        compare(place(a, 8), place(b, 8)) ||
        compare(place(a, 9), place(b, 9)) ||
        a - b,
    )
    this.#order = Int32Array.from(starts)
    this.#next = starts[0] ?? this.#end
  }

  /** Of sorted entries the place of the last one. */
  get lastPlace(): Place {
    const d = (this.#order?.at(-1) ?? 0) >> 3
    const doubles = this.#doubles
    return { at: doubles[d + 7] as number, seq: doubles[d + 8] as number, sub: doubles[d + 9] as number }
  }

  next(): boolean {
    if (this.#next >= this.#end) return false
    const i = this.#next >> 2
    const d = this.#next >> 3
    const ints = this.#ints
    this.source = ints[i + 1] as number
    this.task = ints[i + 2] as number
    this.originTopic = ints[i + 3] as number
    this.originPartition = ints[i + 4] as number
    const keyLength = ints[i + 5] as number
    const valueLength = ints[i + 6] as number
    const headersLength = ints[i + headInts - 1] as number
    this.offset = this.#doubles[d + 4] as number
    this.timestamp = this.#doubles[d + 5] as number
    this.watermark = this.#doubles[d + 6] as number
    this.at = this.#doubles[d + 7] as number
    const head = this.#head
    if (head > heads.unnumbered) this.seq = this.#doubles[d + 8] as number
    if (head === heads.handedOver) this.sub = this.#doubles[d + 9] as number
    let from = this.#next + head
    this.keyStart = keyLength < 0 ? -1 : from
    if (keyLength > 0) from += keyLength
    this.keyEnd = keyLength < 0 ? -1 : from
    this.valueStart = valueLength < 0 ? -1 : from
    if (valueLength > 0) from += valueLength
    this.valueEnd = valueLength < 0 ? -1 : from
    this.headersStart = from
    this.headersEnd = from + headersLength
    this.#next = this.#order === undefined ? this.#next + (ints[i] as number) : this.#following()
    return true
  }

  #following(): number {
    return this.#order?.[++this.#nextInOrder] ?? this.#end
  }
}

/** -Infinity, which stands for an unknown time, has no difference with itself. */
function compare(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0
}
