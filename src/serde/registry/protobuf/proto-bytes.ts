/**
 * The pieces of Protobuf's encoding, for functions that are made for one message each. Reading gives -1 or undefined for
 * what is not as expected, writing a position below zero: then the library does it, and says what is wrong.
 */
import { SerdeError } from '../../serde.ts'
import { asciiText, shortText } from '../../short-text.ts'

/** There is no room left. */
export const noRoom = -1
/** The value is not simple: it is left to the library. */
export const notSimple = -2

/** Longest text that is written by hand. */
const handText = 32

export class ProtoReader {
  /** Behind what was read last. */
  at = 0
  view: DataView = new DataView(new ArrayBuffer(8))
  #bytes: Uint8Array | undefined
  readonly #long = new DataView(new ArrayBuffer(8))
  #low = 0
  #high = 0

  /** Many records lie in the same bytes. */
  use(bytes: Uint8Array): void {
    if (bytes === this.#bytes) return
    this.#bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /** The lower 32 bits of an integer that begins at `at`, without a sign; -1: it does not end before `end`. */
  varint(bytes: Uint8Array, at: number, end: number): number {
    return this.#varint(bytes, at, end) ? this.#low >>> 0 : -1
  }

  /** The number and kind of a field. -1: it is none. */
  tag(bytes: Uint8Array, at: number, end: number): number {
    const tag = this.varint(bytes, at, end)
    return this.at - at > 5 || this.#high !== 0 ? -1 : tag
  }

  #varint(bytes: Uint8Array, start: number, end: number): boolean {
    let low = 0
    let high = 0
    let at = start
    for (let shift = 0; shift < 70 && at < end; shift += 7) {
      const byte = bytes[at++] as number
      const bits = byte & 127
      if (shift < 28) low |= bits << shift
      else if (shift === 28) {
        low |= bits << 28
        high = bits >>> 4
      } else if (shift < 63) high |= bits << (shift - 32)
      else high |= bits << 31
      if (byte < 128) {
        this.at = at
        this.#low = low
        this.#high = high
        return true
      }
    }
    return false
  }

  int64(bytes: Uint8Array, at: number, end: number): bigint | undefined {
    if (!this.#varint(bytes, at, end)) return undefined
    return this.#signed(this.#low, this.#high)
  }

  uint64(bytes: Uint8Array, at: number, end: number): bigint | undefined {
    if (!this.#varint(bytes, at, end)) return undefined
    if (this.#high === 0) return BigInt(this.#low >>> 0)
    this.#set(this.#low, this.#high)
    return this.#long.getBigUint64(0, true)
  }

  sint64(bytes: Uint8Array, at: number, end: number): bigint | undefined {
    if (!this.#varint(bytes, at, end)) return undefined
    const [low, high] = [this.#low, this.#high]
    const sign = -(low & 1)
    return this.#signed(((low >>> 1) | (high << 31)) ^ sign, (high >>> 1) ^ sign)
  }

  #signed(low: number, high: number): bigint {
    if (high === 0) return BigInt(low >>> 0)
    this.#set(low, high)
    return this.#long.getBigInt64(0, true)
  }

  #set(low: number, high: number): void {
    this.#long.setInt32(0, low, true)
    this.#long.setInt32(4, high, true)
  }
}

/** Undefined: it may be no UTF-8. */
export function readText(bytes: Buffer, from: number, to: number): string | undefined {
  if (to === from) return ''
  if (to - from <= shortText) {
    const short = asciiText(bytes, from, to)
    if (short !== undefined) return short
  }
  const text = bytes.toString('utf8', from, to)
  return text.includes('\ufffd') ? undefined : text
}

/** What is kept of a record does not lie in its bytes. */
export function ownBytes(bytes: Buffer, from: number, to: number): Uint8Array {
  const own = new Uint8Array(to - from)
  own.set(bytes.subarray(from, to))
  return own
}

/** An unsigned integer of 32 bits, for which there is room. */
export function writeVarint(bytes: Uint8Array, start: number, value: number): number {
  let at = start
  let left = value
  while (left > 127) {
    bytes[at++] = (left & 127) | 128
    left >>>= 7
  }
  bytes[at++] = left
  return at
}

/** A signed integer of 32 bits, for which there is room. */
export function writeInt32(bytes: Uint8Array, at: number, value: number): number {
  return value >= 0 ? writeVarint(bytes, at, value) : writeVarint64(bytes, at, value, -1)
}

function writeVarint64(bytes: Uint8Array, start: number, low: number, high: number): number {
  let at = start
  let [lower, upper] = [low >>> 0, high >>> 0]
  while (upper !== 0 || lower > 127) {
    bytes[at++] = (lower & 127) | 128
    lower = ((lower >>> 7) | (upper << 25)) >>> 0
    upper >>>= 7
  }
  bytes[at++] = lower
  return at
}

const long = new DataView(new ArrayBuffer(8))

/** 64 bits as an integer of variable length, for which there is room. */
export function writeInt64(bytes: Uint8Array, at: number, value: bigint): number {
  long.setBigInt64(0, value, true)
  return writeVarint64(bytes, at, long.getInt32(0, true), long.getInt32(4, true))
}

export function writeSint64(bytes: Uint8Array, at: number, value: bigint): number {
  long.setBigInt64(0, value, true)
  const [low, high] = [long.getInt32(0, true), long.getInt32(4, true)]
  const sign = high >> 31
  return writeVarint64(bytes, at, (low << 1) ^ sign, ((high << 1) | (low >>> 31)) ^ sign)
}

/** A text with its length in front. */
export function writeText(bytes: Buffer, at: number, end: number, text: string): number {
  const { length } = text
  if (length <= handText && at + 1 + length <= end) {
    let i = 0
    for (; i < length; i++) {
      const code = text.charCodeAt(i)
      if (code > 127) break
      bytes[at + 1 + i] = code
    }
    if (i === length) {
      bytes[at] = length
      return at + 1 + length
    }
  }
  // The library, too, would write another text in its place.
  if (!text.isWellFormed()) throw new SerdeError('a text has half of a surrogate pair, which UTF-8 cannot hold')
  const size = Buffer.byteLength(text)
  if (at + 5 + size > end) return noRoom
  const start = writeVarint(bytes, at, size)
  return start + bytes.write(text, start, size)
}

/** Bytes with their length in front. */
export function writeBytes(bytes: Uint8Array, at: number, end: number, value: Uint8Array): number {
  if (at + 5 + value.length > end) return noRoom
  const start = writeVarint(bytes, at, value.length)
  bytes.set(value, start)
  return start + value.length
}

/** The length of what stands between `at + 1` and `to`, in front of it: one byte is there for it. */
export function writeLength(bytes: Uint8Array, at: number, to: number, end: number): number {
  const length = to - at - 1
  if (length < 128) {
    bytes[at] = length
    return to
  }
  const more = length < 1 << 14 ? 1 : length < 1 << 21 ? 2 : length < 1 << 28 ? 3 : 4
  if (to + more > end) return noRoom
  bytes.copyWithin(at + 1 + more, at + 1, to)
  writeVarint(bytes, at, length)
  return to + more
}

export interface UnknownField {
  readonly no: number
  readonly wireType: number
  readonly data: Uint8Array
}

/** Fields that the application does not know, as they were read. */
export function writeUnknown(bytes: Uint8Array, start: number, end: number, fields: readonly UnknownField[]): number {
  let at = start
  for (const { no, wireType, data } of fields) {
    if (at + 5 + data.length > end) return noRoom
    at = writeVarint(bytes, at, ((no << 3) | wireType) >>> 0)
    bytes.set(data, at)
    at += data.length
  }
  return at
}

const smallest = -(2n ** 63n)
const largest = 2n ** 63n - 1n
const largestUnsigned = 2n ** 64n - 1n

export function isInt64(value: unknown): boolean {
  return typeof value === 'bigint' && value >= smallest && value <= largest
}

export function isUint64(value: unknown): boolean {
  return typeof value === 'bigint' && value >= 0n && value <= largestUnsigned
}

export function isFloat(value: unknown): boolean {
  return typeof value === 'number' && (Number.isFinite(Math.fround(value)) || !Number.isFinite(value))
}

/** The key of a map as a number or bigint of its type; undefined: it is not simple. */
export function mapKey(key: string, isLong: boolean): number | bigint | undefined {
  if (!/^-?(0|[1-9]\d{0,19})$/.test(key)) return undefined
  return isLong ? BigInt(key) : Number(key)
}
