/**
 * Keys to small numbers, their cells, without an object for any of them: a look-up touches two places in memory, an entry of
 * the index and the cell's record, in which the key's bytes and what the cell is for lie side by side. With a hundred thousand
 * rows of objects each of the five that a look-up would pass through is a wait of its own, which takes longer than all the work
 * on the record.
 *
 * Keys are key strings: one character a byte.
 */
import { latin1Text, shortText } from '../../serde/short-text.ts'

import type { KeyBytes } from '../backends/key-order.ts'

/** Doubles, integers and bytes of a cell's record. The first doubles and integers are the user's. */
export const recordDoubles = 8
export const recordInts = 16
const recordBytes = 64
/** Integers of the record: where a long key starts, the key's length (-1: the cell is free), the key's hash. */
const startInt = 7
const lengthInt = 8
const hashInt = 9
/** Behind them the bytes of a key that is short enough. */
const keyByte = 40
const shortKey = recordBytes - keyByte
const leastCapacity = 64
/**
 * From so many cells on records are given room for very many: the platform gives memory to what is written, not to what is
 * asked for, and every copy is memory that was never written before.
 */
const manyCells = 65_536
const veryManyCells = 1_048_576
/** Cells that are entered into a new index together. */
const entriesAtOnce = 32
const leastArena = 1024

const latin1Slice = Buffer.prototype.latin1Slice
const noBytes = new Uint8Array(0)

export class CellTable implements KeyBytes {
  /** Doubles 0 and 1 and integers 4 to 6 of each record are the user's, and 0 in a new one. */
  doubles: Float64Array<ArrayBuffer>
  ints: Int32Array<ArrayBuffer>
  #bytes: Uint8Array<ArrayBuffer>
  /**
   * Cells + 1 by hash; 0: free. At most half is taken. The bits that no cell needs are the hash's own: most cells whose
   * key is another one are passed over without a look at them.
   */
  #index: Int32Array<ArrayBuffer>
  /** Hash of the key that was looked for last. */
  lastHash = 0
  /** What was read ahead has to be of use, or the compiler leaves the reads out. */
  seen = 0
  /** Keys that are too long for the record. */
  #arena = noBytes
  /** Bytes of the arena that are taken; of those, the ones of keys that are gone. */
  #taken = 0
  #waste = 0
  /** Cells that were ever given out. */
  #used = 0
  readonly #free: number[] = []

  /** `capacity`: cells to begin with, a power of two. */
  constructor(capacity = leastCapacity) {
    this.doubles = new Float64Array(capacity * recordDoubles)
    this.ints = new Int32Array(this.doubles.buffer)
    this.#bytes = new Uint8Array(this.doubles.buffer)
    this.#index = new Int32Array(2 * capacity)
  }

  /** Number of keys. */
  get size(): number {
    return this.#used - this.#free.length
  }

  /** Cells that were ever given out are less than this, … */
  get used(): number {
    return this.#used
  }

  /** … and all cells less than this. */
  get capacity(): number {
    return this.ints.length / recordInts
  }

  /** The cell of a key, or -1. */
  find(key: string): number {
    const hash = hashOf(key)
    this.lastHash = hash
    const index = this.#index
    const mask = index.length - 1
    const ints = this.ints
    for (let i = hash & mask; ; i = (i + 1) & mask) {
      const entry = index[i] as number
      if (entry === 0) return -1
      if ((entry ^ hash) & ~mask) continue
      const cell = (entry & mask) - 1
      if (ints[cell * recordInts + hashInt] === hash && this.#isKey(cell, key)) return cell
    }
  }

  /**
   * Reads where the search for these hashes begins, and no more. The processor waits once for all of them, for no read depends
   * on another; a short loop lets it begin more at a time. So in `touch`.
   */
  touchIndex(hashes: Int32Array, count: number): number {
    const index = this.#index
    const mask = index.length - 1
    let seen = 0
    for (let n = 0; n < count; n++) seen ^= index[(hashes[n] as number) & mask] as number
    return seen
  }

  /** Reads the records of the cells whose keys probably have these hashes, and puts the cells into `cells`; 0 for none. */
  touch(hashes: Int32Array, cells: Int32Array, count: number): number {
    const index = this.#index
    const mask = index.length - 1
    for (let n = 0; n < count; n++) {
      const hash = hashes[n] as number
      let i = hash & mask
      let entry = index[i] as number
      while (entry !== 0 && ((entry ^ hash) & ~mask) !== 0) {
        i = (i + 1) & mask
        entry = index[i] as number
      }
      cells[n] = entry === 0 ? 0 : (entry & mask) - 1
    }
    return this.touchCells(cells, 0, count)
  }

  /** Reads the records of cells. */
  touchCells(cells: Int32Array, from: number, to: number): number {
    const ints = this.ints
    let seen = 0
    for (let n = from; n < to; n++) {
      // Of the first integers and of the last: a record may lie on two lines of the processor's cache.
      const at = (cells[n] as number) * recordInts
      seen ^= (ints[at + hashInt] as number) ^ (ints[at + recordInts - 1] as number)
    }
    return seen
  }

  /** A cell for a key that has none; `hash` is its hash. */
  add(key: string, hash = hashOf(key)): number {
    const cell = this.#free.pop() ?? this.#used++
    if (cell >= this.capacity || 2 * cell >= this.#index.length) this.#grow()
    const { length } = key
    const at = cell * recordInts
    const { doubles } = this
    const d = cell * recordDoubles
    doubles[d] = 0
    doubles[d + 1] = 0
    doubles[d + 2] = 0
    doubles[d + 3] = 0
    if (length <= shortKey) {
      write(this.#bytes, cell * recordBytes + keyByte, key)
    } else {
      if (this.#taken + length > this.#arena.length) this.#makeRoom(length, cell)
      write(this.#arena, this.#taken, key)
      this.ints[at + startInt] = this.#taken
      this.#taken += length
    }
    this.ints[at + lengthInt] = length
    this.ints[at + hashInt] = hash
    this.#enter(hash, cell)
    return cell
  }

  remove(cell: number): void {
    const at = cell * recordInts
    this.#leave(this.ints[at + hashInt] as number, cell)
    const length = this.ints[at + lengthInt] as number
    if (length > shortKey) this.#waste += length
    this.ints[at + lengthInt] = -1
    this.#free.push(cell)
  }

  /** All cells with a key. */
  *taken(): IterableIterator<number> {
    for (let cell = 0; cell < this.#used; cell++) if (this.keyLength(cell) >= 0) yield cell
  }

  /** The hash of the cell's key. */
  hashAt(cell: number): number {
    return this.ints[cell * recordInts + hashInt] as number
  }

  lengthOf(cell: number): number {
    return this.keyLength(cell)
  }

  keyLength(cell: number): number {
    return this.ints[cell * recordInts + lengthInt] as number
  }

  keyOf(cell: number): string {
    const length = this.keyLength(cell)
    const from = this.#keyStart(cell, length)
    if (length <= shortText) return latin1Text(this.#bytes, from, from + length)
    return latin1Slice.call(length <= shortKey ? this.#bytes : this.#arena, from, from + length)
  }

  /** Writes the key's bytes at `at`; the position behind them. */
  copyKey(cell: number, target: Uint8Array, at: number): number {
    const length = this.keyLength(cell)
    const from = this.#keyStart(cell, length)
    const bytes = length <= shortKey ? this.#bytes : this.#arena
    for (let i = 0; i < length; i++) target[at + i] = bytes[from + i] as number
    return at + length
  }

  byteAt(cell: number, at: number): number {
    const length = this.keyLength(cell)
    const bytes = length <= shortKey ? this.#bytes : this.#arena
    return bytes[this.#keyStart(cell, length) + at] as number
  }

  /** So many bytes of the key from `at` on, up to six, as a number; one that is missing counts as the least. */
  numberAt(cell: number, at: number, count: number): number {
    const length = this.keyLength(cell)
    const from = this.#keyStart(cell, length)
    const bytes = length <= shortKey ? this.#bytes : this.#arena
    let number = 0
    for (let i = at; i < at + count; i++) number = number * 256 + (i < length ? (bytes[from + i] as number) : 0)
    return number
  }

  /** Four of them: what `key-order.ts` sorts by. */
  fourAt(cell: number, at: number): number {
    return this.numberAt(cell, at, 4)
  }

  /** How many bytes two keys share at their beginning, looking at no more than `most`. */
  shared(a: number, b: number, most: number): number {
    const lengthOfA = this.keyLength(a)
    const lengthOfB = this.keyLength(b)
    const fromA = this.#keyStart(a, lengthOfA)
    const fromB = this.#keyStart(b, lengthOfB)
    const bytesOfA = lengthOfA <= shortKey ? this.#bytes : this.#arena
    const bytesOfB = lengthOfB <= shortKey ? this.#bytes : this.#arena
    const end = Math.min(most, lengthOfA, lengthOfB)
    let n = 0
    while (n < end && bytesOfA[fromA + n] === bytesOfB[fromB + n]) n++
    return n
  }

  /** As `clear`, but the room that was taken is kept for the keys that come. */
  empty(): void {
    this.#index.fill(0)
    this.#taken = 0
    this.#waste = 0
    this.#used = 0
    this.#free.length = 0
  }

  clear(): void {
    this.#lay(new Float64Array(leastCapacity * recordDoubles))
    this.#index = new Int32Array(2 * leastCapacity)
    this.#arena = noBytes
    this.#taken = 0
    this.#waste = 0
    this.#used = 0
    this.#free.length = 0
  }

  #lay(doubles: Float64Array<ArrayBuffer>): void {
    this.doubles = doubles
    this.ints = new Int32Array(doubles.buffer)
    this.#bytes = new Uint8Array(doubles.buffer)
  }

  #keyStart(cell: number, length: number): number {
    return length <= shortKey ? cell * recordBytes + keyByte : (this.ints[cell * recordInts + startInt] as number)
  }

  #isKey(cell: number, key: string): boolean {
    const { length } = key
    if (this.keyLength(cell) !== length) return false
    const bytes = length <= shortKey ? this.#bytes : this.#arena
    const start = this.#keyStart(cell, length)
    for (let i = 0; i < length; i++) if (bytes[start + i] !== key.charCodeAt(i)) return false
    return true
  }

  #enter(hash: number, cell: number): void {
    const index = this.#index
    const mask = index.length - 1
    let i = hash & mask
    while (index[i] !== 0) i = (i + 1) & mask
    index[i] = (hash & ~mask) | (cell + 1)
  }

  /** Takes an entry out and moves those behind it up, so that no search ends at the gap. */
  #leave(hash: number, cell: number): void {
    const index = this.#index
    const mask = index.length - 1
    let gap = hash & mask
    while (((index[gap] as number) & mask) !== cell + 1) gap = (gap + 1) & mask
    for (let i = (gap + 1) & mask; index[i] !== 0; i = (i + 1) & mask) {
      const wanted = (this.ints[(((index[i] as number) & mask) - 1) * recordInts + hashInt] as number) & mask
      // An entry whose own place lies behind the gap stays.
      if (((i - wanted) & mask) < ((i - gap) & mask)) continue
      index[gap] = index[i] as number
      gap = i
    }
    index[gap] = 0
  }

  #grow(): void {
    const used = this.#used - 1
    if (used === this.capacity) {
      const doubles = recordsFor(used)
      doubles.set(this.doubles)
      this.#lay(doubles)
    }
    if (2 * used < this.#index.length) return
    this.#index = new Int32Array(this.#index.length * 2)
    this.#enterAll(used)
  }

  /** Enters the cells below this one; some at a time, so that waits for their places in the index overlap. */
  #enterAll(used: number): void {
    const index = this.#index
    const mask = index.length - 1
    const { ints } = this
    for (let from = 0; from < used; from += entriesAtOnce) {
      const to = Math.min(used, from + entriesAtOnce)
      let seen = 0
      for (let cell = from; cell < to; cell++)
        seen ^= index[(ints[cell * recordInts + hashInt] as number) & mask] as number
      this.seen = seen
      for (let cell = from; cell < to; cell++) {
        const at = cell * recordInts
        if ((ints[at + lengthInt] as number) >= 0) this.#enter(ints[at + hashInt] as number, cell)
      }
    }
  }

  /** Long keys that are gone leave room; and there is as much again. `coming` has no key yet. */
  #makeRoom(length: number, coming: number): void {
    const before = this.#arena
    const needed = this.#taken - this.#waste + length
    let size = Math.max(leastArena, before.length)
    while (size < 2 * needed) size *= 2
    const arena = new Uint8Array(size)
    let taken = 0
    for (let cell = 0; cell < this.#used; cell++) {
      const count = this.keyLength(cell)
      if (count <= shortKey || cell === coming) continue
      const start = this.#keyStart(cell, count)
      arena.set(before.subarray(start, start + count), taken)
      this.ints[cell * recordInts + startInt] = taken
      taken += count
    }
    this.#arena = arena
    this.#taken = taken
    this.#waste = 0
  }
}

/** Records for more cells than these. */
function recordsFor(cells: number): Float64Array<ArrayBuffer> {
  if (cells >= manyCells) {
    try {
      return new Float64Array(Math.max(4 * cells, veryManyCells) * recordDoubles)
    } catch (error) {
      // An address space that is limited: so much was never needed at once.
      if (!(error instanceof RangeError)) throw error
    }
  }
  return new Float64Array(2 * cells * recordDoubles)
}

function write(bytes: Uint8Array, at: number, key: string): void {
  for (let i = 0; i < key.length; i++) bytes[at + i] = key.charCodeAt(i)
}

/** The hash of the key of which these are the bytes. */
export function hashOfBytes(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0x811c9dc5 | 0
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return hash ^ (hash >>> 15)
}

export function hashOf(key: string): number {
  let hash = 0x811c9dc5 | 0
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return hash ^ (hash >>> 15)
}
