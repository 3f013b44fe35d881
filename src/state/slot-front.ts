/** Committed rows in front of a backend, in the columns in which a store keeps its uncommitted ones as well. */
import { assert } from '../base/assert.ts'
import type { HashedRows } from './contract.ts'
import type { FrontRows, HeldBatch } from './front-rows.ts'
import type { KeyFilter } from './key-filter.ts'
import { mostAhead } from './look-ahead.ts'
import { type KeyBytes, orderByHash, orderByKey } from './key-order.ts'

/** The rows themselves: see `slot-rows.ts`. */
export interface FrontSlots {
  readonly size: number
  readonly keyBytes: KeyBytes
  /** Slots with a row, in no order. */
  taken(): IterableIterator<number>
  keyOf(slot: number): string
  /** Brings the rows of these slots near; what it gives says nothing. */
  touchSlots(slots: Int32Array, from: number, to: number): number
  /** Writes the key's bytes at `at`; the position behind them. */
  writeKey(slot: number, target: Uint8Array, at: number): number
  /** Keys in their order. */
  keys(from: string | undefined, to: string | undefined, reverse: boolean): IterableIterator<string>
  /** The committed row; null: it is deleted; undefined: that is the backend's to tell. */
  committed(key: string): Uint8Array | null | undefined
  /** As `committed`, where a row is known to be; valid until the next call. */
  committedAt(slot: number): Uint8Array | null
  /** The hash of its key. */
  hashAt(slot: number): number
  /** Bytes of the slot's key and value, about. */
  weightOf(slot: number): number
  /** Puts a committed row. */
  hold(key: string, value: Uint8Array | null): void
  /** The backend has the row. It goes, as far as no uncommitted change needs the slot. */
  forget(slot: number): void
  clear(): void
}

/** What a row takes beside its key and value: numbers, the index, its place among the values. */
const overheadBytes = 104

/** What is known of a slot: its row is held, somebody has looked whether the backend has one, and it has none. */
const isHeld = 1
const isKnown = 2
const isNew = 4

const noHashes = new Uint32Array(0)

export class SlotFront implements FrontRows {
  difference = 0
  gone: KeyFilter | undefined
  readonly #slots: FrontSlots
  #flags = new Uint8Array(64)
  /** Slots whose committed row the backend does not have, but for those that are being written. */
  #held = new Int32Array(64)
  #heldCount = 0
  /** Rows that the backend does not have, with those that are being written. */
  #count = 0
  /** Bytes of a row's key and value, smoothed. */
  #rowBytes = 0

  constructor(slots: FrontSlots) {
    this.#slots = slots
  }

  get heldBytes(): number {
    return Math.round(this.#count * (overheadBytes + this.#rowBytes))
  }

  get frontBytes(): number {
    return Math.round(this.#slots.size * (overheadBytes + this.#rowBytes))
  }

  /** False: the backend has no row of a key with this hash that is not here. */
  mayBeBelow(hash: number): boolean {
    return this.gone === undefined || this.gone.has(hash)
  }

  /** A slot was given to a key; `below`: whether the backend has a row, where that is known. */
  added(slot: number, below: boolean | undefined): void {
    if (slot >= this.#flags.length) {
      const flags = new Uint8Array(Math.max(slot + 1, 2 * this.#flags.length))
      flags.set(this.#flags)
      this.#flags = flags
    }
    const isBelow = below ?? (this.mayBeBelow(this.#slots.hashAt(slot)) ? undefined : false)
    this.#flags[slot] = isBelow === undefined ? 0 : isBelow ? isKnown : isKnown | isNew
  }

  /** The slot's committed row is another one now; the backend does not have it. Whether there was one, and is one. */
  took(slot: number, before: boolean, after: boolean): void {
    const flags = this.#flags[slot] as number
    if (flags & isHeld) {
      this.difference += Number(after) - Number(before)
      return
    }
    this.difference += Number(after) - Number((flags & isNew) === 0)
    this.#flags[slot] = flags | isHeld
    if (this.#heldCount === this.#held.length) {
      const held = new Int32Array(2 * this.#heldCount)
      held.set(this.#held)
      this.#held = held
    }
    this.#held[this.#heldCount++] = slot
    // To look at a row is a wait for memory: a few tell enough.
    if (this.#count++ > 16 && (this.#count & 63) > 0) return
    this.#rowBytes += (this.#slots.weightOf(slot) - this.#rowBytes) / Math.min(this.#count, 16)
  }

  committed(key: string): Uint8Array | null | undefined {
    return this.#slots.committed(key)
  }

  keys(from: string | undefined, to: string | undefined, reverse: boolean): IterableIterator<string> {
    return this.#slots.keys(from, to, reverse)
  }

  hold(key: string, value: Uint8Array | null): void {
    this.#slots.hold(key, value)
  }

  *held(): IterableIterator<readonly [string, Uint8Array | null]> {
    for (const slot of this.#slots.taken()) {
      if ((this.#flags[slot] as number) & isHeld) yield [this.#slots.keyOf(slot), this.#slots.committedAt(slot)]
    }
  }

  take(inHashOrder: boolean): HeldBatch {
    const slots = this.#heldSlots()
    this.#heldCount = 0
    const hashes = inHashOrder ? orderByHash(slots, (slot) => this.#slots.hashAt(slot)) : undefined
    if (hashes === undefined) orderByKey(slots, this.#slots.keyBytes)
    return new SlotBatch(this.#slots, slots, hashes, (slot, isThere, keep) => this.#release(slot, isThere, keep))
  }

  compare(has: (key: string) => boolean): void {
    for (const slot of this.#slots.taken()) {
      const flags = this.#flags[slot] as number
      if ((flags & isHeld) === 0 || flags & isKnown) continue
      const found = has(this.#slots.keyOf(slot))
      if (!found) this.difference++
      this.#flags[slot] = isHeld | isKnown | (found ? 0 : isNew)
    }
  }

  shrink(): void {
    if (this.#slots.size === this.#count) return
    for (const slot of this.#slots.taken()) {
      if (((this.#flags[slot] as number) & isHeld) === 0) this.#drop(slot)
    }
  }

  leave(): void {
    for (const slot of this.#slots.taken()) {
      if (((this.#flags[slot] as number) & isHeld) === 0) this.gone?.add(this.#slots.hashAt(slot))
    }
  }

  clear(): void {
    this.#slots.clear()
    this.#flags.fill(0)
    this.#heldCount = 0
    this.#count = 0
    this.difference = 0
  }

  /** Those that are held; where they are many as they lie in memory, since each is looked at next. */
  #heldSlots(): Int32Array<ArrayBuffer> {
    const held = this.#held.subarray(0, this.#heldCount)
    if (held.length <= this.#flags.length / 16) return held.slice()
    const flags = this.#flags
    const slots = new Int32Array(held.length)
    let count = 0
    for (let slot = 0; slot < flags.length; slot++) if ((flags[slot] as number) & isHeld) slots[count++] = slot
    assert(count === held.length, `${held.length} rows are held, ${count} say that they are`)
    return slots
  }

  #release(slot: number, isThere: boolean, keep: boolean): void {
    const flags = this.#flags[slot] as number
    this.#count--
    this.difference -= Number(isThere) - Number((flags & isNew) === 0)
    this.#flags[slot] = isThere ? isKnown : isKnown | isNew
    if (!keep || !isThere) this.#drop(slot)
  }

  /** From now on the row is the backend's to tell. */
  #drop(slot: number): void {
    this.gone?.add(this.#slots.hashAt(slot))
    this.#slots.forget(slot)
  }
}

class SlotBatch implements HeldBatch {
  readonly count: number
  readonly hashed: HashedRows | undefined
  readonly hashes: Uint32Array
  /** What was read has to be of use, or the compiler leaves the reads out. */
  seen = 0
  readonly #rows: FrontSlots
  readonly #slots: Int32Array
  /** By place: 1 where a value was written, and no deletion. */
  readonly #isThere: Uint8Array
  readonly #release: (slot: number, isThere: boolean, keep: boolean) => void

  constructor(
    rows: FrontSlots,
    slots: Int32Array,
    hashes: Uint32Array | undefined,
    release: (slot: number, isThere: boolean, keep: boolean) => void,
  ) {
    this.count = slots.length
    this.#isThere = new Uint8Array(slots.length)
    this.hashed = hashes && this
    this.hashes = hashes ?? noHashes
    this.#rows = rows
    this.#slots = slots
    this.#release = release
  }

  key(place: number): string {
    return this.#rows.keyOf(this.#slots[place] as number)
  }

  keyLength(place: number): number {
    return this.#rows.keyBytes.lengthOf(this.#slots[place] as number)
  }

  writeKey(place: number, target: Uint8Array, at: number): number {
    return this.#rows.writeKey(this.#slots[place] as number, target, at)
  }

  value(place: number): Uint8Array | null {
    const value = this.#rows.committedAt(this.#slots[place] as number)
    this.#isThere[place] = value === null ? 0 : 1
    return value
  }

  touch(from: number, to: number): void {
    this.seen = this.#rows.touchSlots(this.#slots, from, to)
  }

  release(from: number, to: number, keep: boolean): void {
    for (let start = from; start < to; start += mostAhead) {
      const end = Math.min(to, start + mostAhead)
      // A row that stays is not looked at again: what was written is known.
      if (!keep) this.touch(start, end)
      for (let i = start; i < end; i++) this.#release(this.#slots[i] as number, this.#isThere[i] === 1, keep)
    }
  }
}
