/**
 * The checksum (CRC-32) behind every value of a database. It goes over the store it belongs to, the key and the value, so that neither a
 * flipped bit nor a row of another place passes for a row.
 */
import { crc32 } from 'node:zlib'

/** Bytes of a checksum. */
export const checksumBytes = 4
/** Below this length the loop is quicker than the call (measured). */
const shortInput = 96
const table = new Int32Array(256)
for (let i = 0; i < 256; i++) {
  let c = i
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1
  table[i] = c
}

/** The checksum of what this one is of, and `bytes[from, to)` behind it; unsigned. */
export function checksum(before: number, bytes: Uint8Array, from = 0, to = bytes.length): number {
  if (to - from > shortInput) return crc32(bytes.subarray(from, to), before)
  let c = ~before
  for (let i = from; i < to; i++) c = (table[(c ^ (bytes[i] as number)) & 0xff] as number) ^ (c >>> 8)
  return ~c >>> 0
}

/** As `checksum`, of a key string (`bytes.ts`). */
export function checksumOfKey(before: number, key: string): number {
  let c = ~before
  for (let i = 0; i < key.length; i++) c = (table[(c ^ key.charCodeAt(i)) & 0xff] as number) ^ (c >>> 8)
  return ~c >>> 0
}

export function writeChecksum(bytes: Uint8Array, at: number, sum: number): void {
  bytes[at] = sum
  bytes[at + 1] = sum >>> 8
  bytes[at + 2] = sum >>> 16
  bytes[at + 3] = sum >>> 24
}

/** The length of the value that stands before its checksum; -1: it is not the one that was written. */
export function checkedLength(ofKey: number, bytes: Uint8Array, from = 0, to = bytes.length): number {
  const end = to - checksumBytes
  if (end < from) return -1
  const found =
    ((bytes[end] as number) |
      ((bytes[end + 1] as number) << 8) |
      ((bytes[end + 2] as number) << 16) |
      ((bytes[end + 3] as number) << 24)) >>>
    0
  return checksum(ofKey, bytes, from, end) === found ? end - from : -1
}

/** Puts values before their checksums, one after the other in the same memory. */
export class ChecksumWriter {
  #bytes = new Uint8Array(1024)

  /** Valid until the next call. */
  with(ofKey: number, value: Uint8Array): Uint8Array {
    const { length } = value
    const end = length + checksumBytes
    if (end > this.#bytes.length) this.#bytes = new Uint8Array(2 * end)
    const bytes = this.#bytes
    if (length > shortInput) bytes.set(value)
    else for (let i = 0; i < length; i++) bytes[i] = value[i] as number
    writeChecksum(bytes, length, checksum(ofKey, bytes, 0, length))
    return bytes.subarray(0, end)
  }
}
