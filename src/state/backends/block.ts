/**
 * Rows that lie together under one key of a database, in the order of their keys' hashes: to write all of them costs
 * little more than to write one. A row is the hash of its key (4 bytes, the lowest first), the length of the key, that of
 * the value (a byte each, or 255 and 4 bytes), the key, the value.
 */
import type { HashedRows } from '../contract.ts'
import { checksum, checksumBytes, writeChecksum } from './checksum.ts'

/** A length that takes more than a byte begins with this one. */
const long = 255
const leastBytes = 4096
/** Longer ranges are copied by the platform. */
const shortCopy = 64

/** What is told of a block whose lengths lead out of it: the words by which LMDB tells of a page like that. */
export class DamagedBlock extends Error {
  constructor() {
    super('MDB_CORRUPTED: a block of rows ends within a row')
  }
}

function hashAt(block: Uint8Array, at: number): number {
  return (
    ((block[at] as number) |
      ((block[at + 1] as number) << 8) |
      ((block[at + 2] as number) << 16) |
      ((block[at + 3] as number) << 24)) >>>
    0
  )
}

/** Where the row's parts lie that was looked at last. */
class Place {
  key = 0
  value = 0
  /** Behind the row. */
  end = 0

  read(block: Uint8Array, length: number, row: number): void {
    let at = row + 4
    let keyLength = block[at++] as number
    if (keyLength === long) {
      keyLength = hashAt(block, at)
      at += 4
    }
    let valueLength = block[at++] as number
    if (valueLength === long) {
      valueLength = hashAt(block, at)
      at += 4
    }
    this.key = at
    this.value = at + keyLength
    this.end = this.value + valueLength
    // Lengths behind the end are no numbers, and nothing is greater than those.
    if (!(this.end <= length)) throw new DamagedBlock()
  }
}

const place = new Place()

/** The value of a key (as a string: `bytes.ts`) with this hash; it lies in the block. */
export function valueIn(block: Uint8Array, length: number, hash: number, key: string): Uint8Array | undefined {
  for (let at = 0; at < length; at = place.end) {
    place.read(block, length, at)
    const found = hashAt(block, at)
    if (found < hash) continue
    if (found > hash) return undefined
    if (place.value - place.key === key.length && isKey(block, place.key, key))
      return block.subarray(place.value, place.end)
  }
  return undefined
}

function isKey(block: Uint8Array, at: number, key: string): boolean {
  for (let i = 0; i < key.length; i++) if (block[at + i] !== key.charCodeAt(i)) return false
  return true
}

/** Shows each row of a block; key and value lie in it. */
export function eachRow(block: Uint8Array, length: number, visit: (key: Uint8Array, value: Uint8Array) => void): void {
  for (let at = 0; at < length; ) {
    place.read(block, length, at)
    const { key, value, end } = place
    visit(block.subarray(key, value), block.subarray(value, end))
    at = end
  }
}

/** Where rows begin whose hash is not less than this one. */
export function splitAt(block: Uint8Array, length: number, hash: number): number {
  let at = 0
  while (at < length && hashAt(block, at) < hash) {
    place.read(block, length, at)
    at = place.end
  }
  return at
}

/** Makes blocks, one after the other in the same memory. */
export class BlockWriter {
  bytes = new Uint8Array(leastBytes)
  length = 0
  /** By how many rows the last block has more than the one it replaces. */
  added = 0
  #key = new Uint8Array(64)

  /** The block with the rows of these places, which come in the order of their hashes, in it. */
  merge(block: Uint8Array | undefined, blockLength: number, rows: HashedRows, from: number, to: number): void {
    const { hashes } = rows
    this.length = 0
    this.added = 0
    let at = 0
    for (let next = from; next < to; ) {
      const hash = hashes[next] as number
      let end = next + 1
      while (end < to && hashes[end] === hash) end++
      if (block === undefined) {
        for (; next < end; next++) this.#put(hash, rows, next)
        continue
      }
      at = this.#copyBefore(block, blockLength, at, hash)
      const start = at
      while (at < blockLength && hashAt(block, at) === hash) {
        place.read(block, blockLength, at)
        at = place.end
      }
      if (at > start) this.#copyOthers(block, blockLength, start, at, rows, next, end)
      for (; next < end; next++) this.#put(hash, rows, next)
    }
    if (block !== undefined && at < blockLength) this.#copy(block, at, blockLength)
  }

  /** A block's part as a block. */
  part(block: Uint8Array, from: number, to: number): void {
    this.length = 0
    this.#copy(block, from, to)
  }

  /** The block before its checksum, which goes on from that of what the block stands under. */
  withChecksum(before: number): Uint8Array {
    const { length } = this
    this.#makeRoom(checksumBytes)
    writeChecksum(this.bytes, length, checksum(before, this.bytes, 0, length))
    return this.bytes.subarray(0, length + checksumBytes)
  }

  #copyBefore(block: Uint8Array, length: number, from: number, hash: number): number {
    let at = from
    while (at < length && hashAt(block, at) < hash) {
      place.read(block, length, at)
      at = place.end
    }
    if (at > from) this.#copy(block, from, at)
    return at
  }

  /** Rows of one hash, but for those that are replaced. */
  #copyOthers(
    block: Uint8Array,
    length: number,
    from: number,
    to: number,
    rows: HashedRows,
    first: number,
    last: number,
  ): void {
    for (let at = from; at < to; ) {
      place.read(block, length, at)
      const { key, value, end } = place
      let isReplaced = false
      for (let i = first; i < last && !isReplaced; i++) isReplaced = this.#hasKey(rows, i, block, key, value)
      if (isReplaced) this.added--
      else this.#copy(block, at, end)
      at = end
    }
  }

  #hasKey(rows: HashedRows, row: number, block: Uint8Array, from: number, to: number): boolean {
    const length = this.#keyOf(rows, row)
    if (length !== to - from) return false
    const key = this.#key
    for (let i = 0; i < length; i++) if (key[i] !== block[from + i]) return false
    return true
  }

  #keyOf(rows: HashedRows, row: number): number {
    const most = rows.keyLength(row)
    if (most > this.#key.length) this.#key = new Uint8Array(2 * most)
    return rows.writeKey(row, this.#key, 0)
  }

  #put(hash: number, rows: HashedRows, row: number): void {
    const value = rows.value(row)
    if (value === null) return
    this.added++
    const keyLength = rows.keyLength(row)
    const { length } = value
    this.#makeRoom(14 + keyLength + length)
    const { bytes } = this
    let at = writeInt(bytes, this.length, hash)
    at = writeLength(bytes, at, keyLength)
    at = writeLength(bytes, at, length)
    at = rows.writeKey(row, bytes, at)
    if (length > shortCopy) bytes.set(value, at)
    else for (let i = 0; i < length; i++) bytes[at + i] = value[i] as number
    this.length = at + length
  }

  #copy(block: Uint8Array, from: number, to: number): void {
    this.#makeRoom(to - from)
    const { bytes, length } = this
    if (to - from > shortCopy) bytes.set(block.subarray(from, to), length)
    else for (let i = from; i < to; i++) bytes[length + i - from] = block[i] as number
    this.length = length + to - from
  }

  #makeRoom(count: number): void {
    const needed = this.length + count
    if (needed <= this.bytes.length) return
    const bytes = new Uint8Array(2 * needed)
    bytes.set(this.bytes.subarray(0, this.length))
    this.bytes = bytes
  }
}

function writeInt(bytes: Uint8Array, at: number, number: number): number {
  bytes[at] = number
  bytes[at + 1] = number >>> 8
  bytes[at + 2] = number >>> 16
  bytes[at + 3] = number >>> 24
  return at + 4
}

function writeLength(bytes: Uint8Array, at: number, length: number): number {
  if (length < long) {
    bytes[at] = length
    return at + 1
  }
  bytes[at] = long
  return writeInt(bytes, at + 1, length)
}
