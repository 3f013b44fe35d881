/**
 * Keys to small numbers, their slots, without an object for any of them: the keys' bytes lie one behind the other, and a
 * look-up touches two places in memory. With a hundred thousand rows of objects each of the five that a look-up would pass
 * through is a wait of its own, which takes longer than all the work on the record.
 *
 * Keys are key strings: one character a byte.
 */

/** Numbers of an entry of the index: the key's hash, and its slot + 1; 0: free. */
const entryInts = 2
/** Numbers of a slot: where its key starts, the key's length (-1: the slot is free), the key's hash. */
const slotInts = 3
const leastCapacity = 64
const leastArena = 1024

const latin1Slice = Buffer.prototype.latin1Slice

export class SlotTable {
  #index = new Int32Array(2 * leastCapacity * entryInts)
  /** Number of the index's entries − 1. */
  #mask = 2 * leastCapacity - 1
  #slots = new Int32Array(leastCapacity * slotInts)
  #arena = new Uint8Array(leastArena)
  /** Bytes of the arena that are taken; of those, the ones of keys that are gone. */
  #taken = 0
  #waste = 0
  /** Slots that were ever given out. */
  #used = 0
  readonly #free: number[] = []

  /** Number of keys. */
  get size(): number {
    return this.#used - this.#free.length
  }

  /** Slots are less than this. */
  get capacity(): number {
    return this.#slots.length / slotInts
  }

  /** The slot of a key, or -1. */
  find(key: string): number {
    const hash = hashOf(key)
    const index = this.#index
    for (let i = hash & this.#mask; ; i = (i + 1) & this.#mask) {
      const slot = (index[i * entryInts + 1] as number) - 1
      if (slot < 0) return -1
      if (index[i * entryInts] === hash && this.#isKey(slot, key)) return slot
    }
  }

  /** A slot for a key that has none. */
  add(key: string): number {
    const slot = this.#free.pop() ?? this.#used++
    if (slot >= this.capacity) this.#grow()
    const { length } = key
    if (this.#taken + length > this.#arena.length) this.#makeRoom(length)
    const start = this.#taken
    const arena = this.#arena
    for (let i = 0; i < length; i++) arena[start + i] = key.charCodeAt(i)
    this.#taken = start + length
    const hash = hashOf(key)
    const at = slot * slotInts
    this.#slots[at] = start
    this.#slots[at + 1] = length
    this.#slots[at + 2] = hash
    this.#enter(hash, slot)
    return slot
  }

  remove(slot: number): void {
    const at = slot * slotInts
    this.#leave(this.#slots[at + 2] as number, slot)
    this.#waste += this.#slots[at + 1] as number
    this.#slots[at + 1] = -1
    this.#free.push(slot)
  }

  /** A slot that was given out and not taken back. */
  isTaken(slot: number): boolean {
    return slot < this.#used && (this.#slots[slot * slotInts + 1] as number) >= 0
  }

  keyLength(slot: number): number {
    return this.#slots[slot * slotInts + 1] as number
  }

  keyOf(slot: number): string {
    const start = this.#slots[slot * slotInts] as number
    return latin1Slice.call(this.#arena, start, start + this.keyLength(slot))
  }

  /** Writes the key's bytes to the front of `target`. */
  copyKey(slot: number, target: Uint8Array): void {
    const start = this.#slots[slot * slotInts] as number
    const length = this.keyLength(slot)
    const arena = this.#arena
    for (let i = 0; i < length; i++) target[i] = arena[start + i] as number
  }

  /** All slots with a key. */
  *taken(): IterableIterator<number> {
    for (let slot = 0; slot < this.#used; slot++) if (this.isTaken(slot)) yield slot
  }

  clear(): void {
    this.#index = new Int32Array(2 * leastCapacity * entryInts)
    this.#mask = 2 * leastCapacity - 1
    this.#slots = new Int32Array(leastCapacity * slotInts)
    this.#arena = new Uint8Array(leastArena)
    this.#taken = 0
    this.#waste = 0
    this.#used = 0
    this.#free.length = 0
  }

  #isKey(slot: number, key: string): boolean {
    const at = slot * slotInts
    const { length } = key
    if (this.#slots[at + 1] !== length) return false
    const start = this.#slots[at] as number
    const arena = this.#arena
    for (let i = 0; i < length; i++) if (arena[start + i] !== key.charCodeAt(i)) return false
    return true
  }

  #enter(hash: number, slot: number): void {
    const index = this.#index
    let i = hash & this.#mask
    while (index[i * entryInts + 1] !== 0) i = (i + 1) & this.#mask
    index[i * entryInts] = hash
    index[i * entryInts + 1] = slot + 1
  }

  /** Takes an entry out and moves those behind it up, so that no search ends at the gap. */
  #leave(hash: number, slot: number): void {
    const index = this.#index
    const mask = this.#mask
    let gap = hash & mask
    while (index[gap * entryInts + 1] !== slot + 1) gap = (gap + 1) & mask
    for (let i = (gap + 1) & mask; index[i * entryInts + 1] !== 0; i = (i + 1) & mask) {
      const wanted = (index[i * entryInts] as number) & mask
      // An entry whose own place lies behind the gap stays.
      if (((i - wanted) & mask) < ((i - gap) & mask)) continue
      index[gap * entryInts] = index[i * entryInts] as number
      index[gap * entryInts + 1] = index[i * entryInts + 1] as number
      gap = i
    }
    index[gap * entryInts + 1] = 0
  }

  /** At most half of the index is taken. */
  #grow(): void {
    const slots = new Int32Array(this.#slots.length * 2)
    slots.set(this.#slots)
    this.#index = new Int32Array(this.#index.length * 2)
    this.#mask = this.#index.length / entryInts - 1
    const used = this.#slots.length / slotInts
    this.#slots = slots
    for (let slot = 0; slot < used; slot++) {
      if ((slots[slot * slotInts + 1] as number) >= 0) this.#enter(slots[slot * slotInts + 2] as number, slot)
    }
  }

  /** Keys that are gone leave room when they take half of it; else there is more of it. */
  #makeRoom(length: number): void {
    const before = this.#arena
    const needed = this.#taken - this.#waste + length
    let size = before.length
    while (size < 2 * needed) size *= 2
    const arena = new Uint8Array(size)
    let taken = 0
    for (let at = 0; at < this.#used * slotInts; at += slotInts) {
      const count = this.#slots[at + 1] as number
      if (count < 0 || at >= this.#slots.length) continue
      const start = this.#slots[at] as number
      arena.set(before.subarray(start, start + count), taken)
      this.#slots[at] = taken
      taken += count
    }
    this.#arena = arena
    this.#taken = taken
    this.#waste = 0
  }
}

function hashOf(key: string): number {
  let hash = 0x811c9dc5 | 0
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return hash ^ (hash >>> 15)
}
