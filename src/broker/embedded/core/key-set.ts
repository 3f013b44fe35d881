/** Keys in columns: with hundreds of thousands of them an object for each would be most of the work. */

/** Integers of an entry: the key's hash, where its bytes start, their length. */
const entryInts = 4
const [hashInt, startInt, lengthInt] = [0, 1, 2] as const

export class KeySet {
  #entries: Int32Array
  /** Entries + 1 by hash, with as much of the hash as there is room for; 0: free. At most half is taken. */
  #index: Int32Array
  #count = 0
  #arena = new Uint8Array(16 * 1024)
  #taken = 0

  /** `expected` keys may come, or more. */
  constructor(expected: number) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(1024, expected)))
    this.#entries = new Int32Array(size * entryInts)
    this.#index = new Int32Array(2 * size)
  }

  has(bytes: Uint8Array, from: number, to: number): boolean {
    return this.#find(bytes, from, to, hashOf(bytes, from, to))
  }

  /** False: it was there already. */
  add(bytes: Uint8Array, from: number, to: number): boolean {
    const hash = hashOf(bytes, from, to)
    if (this.#find(bytes, from, to, hash)) return false
    const length = to - from
    if ((this.#count + 1) * entryInts > this.#entries.length) this.#grow()
    if (this.#taken + length > this.#arena.length) {
      const arena = new Uint8Array(Math.max(2 * this.#arena.length, this.#taken + length))
      arena.set(this.#arena)
      this.#arena = arena
    }
    for (let i = 0; i < length; i++) this.#arena[this.#taken + i] = bytes[from + i] as number
    const entry = this.#count++
    const at = entry * entryInts
    this.#entries[at + hashInt] = hash
    this.#entries[at + startInt] = this.#taken
    this.#entries[at + lengthInt] = length
    this.#taken += length
    this.#enter(hash, entry)
    return true
  }

  #find(bytes: Uint8Array, from: number, to: number, hash: number): boolean {
    const index = this.#index
    const mask = index.length - 1
    for (let i = hash & mask; ; i = (i + 1) & mask) {
      const found = index[i] as number
      if (found === 0) return false
      if ((found ^ hash) & ~mask) continue
      if (this.#isKey((found & mask) - 1, bytes, from, to, hash)) return true
    }
  }

  #isKey(entry: number, bytes: Uint8Array, from: number, to: number, hash: number): boolean {
    const at = entry * entryInts
    const length = to - from
    if (this.#entries[at + hashInt] !== hash || this.#entries[at + lengthInt] !== length) return false
    const arena = this.#arena
    const start = (this.#entries[at + startInt] as number) >>> 0
    for (let i = 0; i < length; i++) if (arena[start + i] !== bytes[from + i]) return false
    return true
  }

  #enter(hash: number, entry: number): void {
    const index = this.#index
    const mask = index.length - 1
    let i = hash & mask
    while (index[i] !== 0) i = (i + 1) & mask
    index[i] = (hash & ~mask) | (entry + 1)
  }

  #grow(): void {
    const entries = new Int32Array(this.#entries.length * 2)
    entries.set(this.#entries)
    this.#entries = entries
    this.#index = new Int32Array(this.#index.length * 2)
    for (let entry = 0; entry < this.#count; entry++) this.#enter(entries[entry * entryInts + hashInt] as number, entry)
  }
}

function hashOf(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0x811c9dc5 | 0
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return hash ^ (hash >>> 15)
}
