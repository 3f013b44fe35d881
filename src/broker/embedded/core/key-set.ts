/**
 * Keys of a log, told apart exactly. There may be millions, each in a place of memory of its own: what a key costs is the
 * wait for that place, so a place is eight bytes, and those of the keys to come are touched together before.
 */
import { BrokerError } from '../../port.ts'

/** Integers of a place: the key's hash, and where its bytes lie + 1; 0: free. */
const placeInts = 2
/** Lengths from here on take four bytes more. */
const longKey = 255
const mostBytes = 2 ** 32 - 2
const leastPlaces = 1024
/** Of 16 places this many may be taken. */
const mostTaken = 10

/** So much memory may wait for the next set. */
const mostSpare = 64 * 1024 * 1024

interface Spare {
  readonly places: Int32Array<ArrayBuffer>
  readonly arena: Uint8Array
}

/** Of the last set. The log of a partition is compacted time and again: memory that is new each time costs more than its use. */
let spare: Spare | undefined
const none = new Int32Array(0)
const noBytes = new Uint8Array(0)

export class KeySet {
  /** By the hash's uppermost bits, so that a larger table has them in the same order. */
  #places: Int32Array<ArrayBuffer>
  #shift: number
  #count = 0
  #arena: Uint8Array
  #taken = 0
  /** What `touch` read, so that its reading is not left out as without effect. */
  touched = 0

  /** `expected` keys may come, or more. Memory that `release` left is taken before new one, where it fits. */
  constructor(expected: number) {
    const bits = Math.ceil(Math.log2(Math.max(leastPlaces, (expected * 16) / mostTaken)))
    const length = 2 ** bits * placeInts
    const isEnough = spare !== undefined && spare.places.length >= length && spare.places.length <= 4 * length
    this.#places = isEnough ? (spare as Spare).places.subarray(0, length).fill(0) : new Int32Array(length)
    this.#shift = 32 - bits
    this.#arena = isEnough ? (spare as Spare).arena : blank(Math.max(4096, expected * 12))
    if (isEnough) spare = undefined
  }

  /** Nobody asks any more: the next set may have the memory. */
  release(): void {
    const { buffer } = this.#places
    const isMore = buffer.byteLength > (spare?.places.byteLength ?? 0)
    if (isMore && buffer.byteLength + this.#arena.length <= mostSpare) {
      spare = { places: new Int32Array(buffer), arena: this.#arena }
    }
    this.#places = none
    this.#arena = noBytes
  }

  get size(): number {
    return this.#count
  }

  /** The keys of these hashes are about to be looked for: waits for their places overlap. */
  touch(hashes: Int32Array, from: number, to: number): void {
    const places = this.#places
    const shift = this.#shift
    const arena = this.#arena
    let touched = 0
    for (let i = from; i < to; i++) touched ^= places[((hashes[i] as number) >>> shift) * placeInts] as number
    for (let i = from; i < to; i++) {
      const hash = hashes[i] as number
      const at = (hash >>> shift) * placeInts
      const start = places[at + 1] as number
      if (start !== 0 && places[at] === hash) touched ^= arena[(start >>> 0) - 1] as number
    }
    this.touched ^= touched
  }

  /** `hash` is `hashOf` of these bytes, here as below. */
  has(hash: number, bytes: Uint8Array, from: number, to: number): boolean {
    return this.#places[this.#find(hash, bytes, from, to) + 1] !== 0
  }

  /** False: it was there already. */
  add(hash: number, bytes: Uint8Array, from: number, to: number): boolean {
    const at = this.#find(hash, bytes, from, to)
    if (this.#places[at + 1] !== 0) return false
    const start = this.#keep(bytes, from, to)
    this.#places[at] = hash
    this.#places[at + 1] = start + 1
    this.#count++
    if (this.#count * 16 > (this.#places.length / placeInts) * mostTaken) this.#grow()
    return true
  }

  /** The place of the key, or the one where it would belong. */
  #find(hash: number, bytes: Uint8Array, from: number, to: number): number {
    const places = this.#places
    const mask = places.length - 1
    for (let at = (hash >>> this.#shift) * placeInts; ; at = (at + placeInts) & mask) {
      const start = places[at + 1] as number
      if (start === 0) return at
      if (places[at] === hash && this.#isKey((start >>> 0) - 1, bytes, from, to)) return at
    }
  }

  #isKey(start: number, bytes: Uint8Array, from: number, to: number): boolean {
    const arena = this.#arena
    const length = to - from
    let at = start + 1
    if (length < longKey) {
      if (arena[start] !== length) return false
    } else {
      if (arena[start] !== longKey || lengthAt(arena, at) !== length) return false
      at += 4
    }
    for (let i = from; i < to; i++) if (arena[at++] !== bytes[i]) return false
    return true
  }

  #keep(bytes: Uint8Array, from: number, to: number): number {
    const length = to - from
    const start = this.#taken
    const needed = start + length + 5
    if (needed > this.#arena.length) this.#growArena(needed)
    const arena = this.#arena
    let at = start
    if (length < longKey) arena[at++] = length
    else {
      arena[at++] = longKey
      for (let shift = 0; shift < 32; shift += 8) arena[at++] = length >>> shift
    }
    for (let i = from; i < to; i++) arena[at++] = bytes[i] as number
    this.#taken = at
    return start
  }

  #growArena(needed: number): void {
    if (needed > mostBytes) {
      throw new BrokerError(
        'KAFKA_STORAGE_ERROR',
        'The keys of a partition take more than 4 GiB: the embedded broker cannot compact its log. Use more partitions.',
      )
    }
    const arena = blank(Math.min(mostBytes, Math.max(2 * this.#arena.length, needed)))
    arena.set(this.#arena.subarray(0, this.#taken))
    this.#arena = arena
  }

  #grow(): void {
    const old = this.#places
    const places = new Int32Array(old.length * 2)
    const mask = places.length - 1
    this.#shift--
    for (let from = 0; from < old.length; from += placeInts) {
      const start = old[from + 1] as number
      if (start === 0) continue
      const hash = old[from] as number
      let at = (hash >>> this.#shift) * placeInts
      while (places[at + 1] !== 0) at = (at + placeInts) & mask
      places[at] = hash
      places[at + 1] = start
    }
    this.#places = places
  }
}

/** Memory as it comes: all of it is written before it is read. */
function blank(bytes: number): Uint8Array {
  return new Uint8Array(Buffer.allocUnsafeSlow(bytes).buffer)
}

function lengthAt(arena: Uint8Array, at: number): number {
  let length = 0
  for (let i = 3; i >= 0; i--) length = (length << 8) | (arena[at + i] as number)
  return length
}

/** Of the bytes of a key: four at a time, for each step waits for the one before it. */
export function hashOf(bytes: Uint8Array, from: number, to: number): number {
  let hash = to - from
  let i = from
  for (; i + 4 <= to; i += 4) {
    const word =
      (bytes[i] as number) |
      ((bytes[i + 1] as number) << 8) |
      ((bytes[i + 2] as number) << 16) |
      ((bytes[i + 3] as number) << 24)
    hash = Math.imul(hash ^ word, 0x2c1b3c6d)
    hash ^= hash >>> 15
  }
  for (; i < to; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  hash = Math.imul(hash ^ (hash >>> 15), 0x297a2d39)
  return hash ^ (hash >>> 15)
}
