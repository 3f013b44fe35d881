/**
 * Byte keys as strings: one character a byte (latin1). Such strings compare as their bytes do, a prefix before its
 * extensions, and JavaScript's own maps hash them; hence stores name rows by them wherever bytes need not be shown.
 */
import { writeInt64 } from '../../serde/primitive.ts'
import { latin1Text, shortText } from '../../serde/short-text.ts'

const latin1Slice = Buffer.prototype.latin1Slice

export function keyString(bytes: Uint8Array): string {
  return textOfBytes(bytes, 0, bytes.length)
}

/** The key string of bytes [from, to). */
export function textOfBytes(bytes: Uint8Array, from: number, to: number): string {
  return to - from <= shortText ? latin1Text(bytes, from, to) : latin1Slice.call(bytes, from, to)
}

export function keyBytes(key: string): Uint8Array {
  const length = key.length
  if (length > 64) return new Uint8Array(Buffer.from(key, 'latin1'))
  const bytes = new Uint8Array(length)
  for (let i = 0; i < length; i++) bytes[i] = key.charCodeAt(i)
  return bytes
}

/** Writes the key at `at`; the position behind it. */
export function writeKeyString(key: string, target: Uint8Array, at: number): number {
  for (let i = 0; i < key.length; i++) target[at + i] = key.charCodeAt(i)
  return at + key.length
}

const scratch = new Uint8Array(8)

let lastInt64 = 0
let lastInt64String = '\0'.repeat(8)

/** A safe integer as 8 big-endian bytes. */
export function int64String(value: number): string {
  if (value === lastInt64) return lastInt64String
  writeInt64(scratch, 0, value)
  lastInt64 = value
  lastInt64String = latin1Slice.call(scratch, 0, 8)
  return lastInt64String
}

/** Reads the 8 bytes at `at` of a key string. */
export function int64At(key: string, at: number): number {
  let high = 0
  for (let i = at; i < at + 4; i++) high = (high << 8) | key.charCodeAt(i)
  const low =
    key.charCodeAt(at + 4) * 16777216 +
    ((key.charCodeAt(at + 5) << 16) | (key.charCodeAt(at + 6) << 8) | key.charCodeAt(at + 7))
  return high * 4294967296 + low
}

/** The smallest key that is greater than every key with this prefix; undefined where there is none. */
export function afterPrefix(prefix: string): string | undefined {
  for (let i = prefix.length - 1; i >= 0; i--) {
    const unit = prefix.charCodeAt(i)
    if (unit < 255) return prefix.slice(0, i) + String.fromCharCode(unit + 1)
  }
  return undefined
}

/** The array itself when it owns all of its memory, else a copy that does: a row must not hold on to a larger buffer. */
export function owned(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice()
}

/** Whether rows can have this time: what a key and a changelog would make of any other is a different time. */
export function isTime(time: number): boolean {
  return Number.isSafeInteger(time) && time >= 0
}

/** The first time that rows can have from this one on; `Infinity`, where nothing lies: it is none. */
export function timeFrom(time: number): number {
  if (time > 0) return Math.min(Math.ceil(time), Number.MAX_SAFE_INTEGER)
  return time <= 0 ? 0 : Number.POSITIVE_INFINITY
}

/** The last time that rows can have up to this one; -1, where nothing lies: it is none, or negative. */
export function timeUpTo(time: number): number {
  return time >= 0 ? Math.min(Math.floor(time), Number.MAX_SAFE_INTEGER) : -1
}
