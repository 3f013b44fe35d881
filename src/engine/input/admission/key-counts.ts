/**
 * How many records of each key a lane has. Keys are told by their slots, which are hashes already, and each record counts twice:
 * a table of numbers, searched from the place that the slot says, costs a fraction of a `Map`.
 */
const smallestSize = 1024

export class KeyCounts {
  /** Slots plus one, 0 where the place is free; and how many records of it there are. */
  #keys = new Int32Array(smallestSize)
  #counts = new Int32Array(smallestSize)
  #shift = shiftOf(smallestSize)
  #size = 0

  of(slot: number): number {
    return this.#counts[this.#find((slot + 1) | 0)] as number
  }

  /** One more, unless there are as many as there may be: then false. */
  addBelow(slot: number, most: number): boolean {
    const key = (slot + 1) | 0
    const at = this.#find(key)
    const count = this.#counts[at] as number
    if (count >= most) return false
    this.#counts[at] = count + 1
    if (count > 0) return true
    this.#keys[at] = key
    if (++this.#size * 2 > this.#keys.length) this.#grow()
    return true
  }

  add(slot: number): void {
    this.addBelow(slot, Number.POSITIVE_INFINITY)
  }

  /** One less; of what was not counted there is none. */
  remove(slot: number): void {
    const at = this.#find((slot + 1) | 0)
    const count = this.#counts[at] as number
    if (count === 0) return
    this.#counts[at] = count - 1
    if (count === 1) this.#free(at)
  }

  clear(): void {
    if (this.#size === 0) return
    this.#keys.fill(0)
    this.#counts.fill(0)
    this.#size = 0
  }

  /** Where the key is, or else the free place where it would be. */
  #find(key: number): number {
    const keys = this.#keys
    let at = this.#home(key)
    for (;;) {
      const found = keys[at]
      if (found === key || found === 0) return at
      at = (at + 1) & (keys.length - 1)
    }
  }

  /** The slots of one partition have their low bits in common. */
  #home(key: number): number {
    return Math.imul(key, 0x9e3779b1) >>> this.#shift
  }

  /** Those behind it that a search would come to by way of this place move up. */
  #free(place: number): void {
    const keys = this.#keys
    const counts = this.#counts
    const mask = keys.length - 1
    let hole = place
    for (let at = (hole + 1) & mask; keys[at] !== 0; at = (at + 1) & mask) {
      const key = keys[at] as number
      const isReachedByHole = ((at - this.#home(key)) & mask) >= ((at - hole) & mask)
      if (!isReachedByHole) continue
      keys[hole] = key
      counts[hole] = counts[at] as number
      hole = at
    }
    keys[hole] = 0
    counts[hole] = 0
    this.#size--
  }

  #grow(): void {
    const keys = this.#keys
    const counts = this.#counts
    this.#keys = new Int32Array(2 * keys.length)
    this.#counts = new Int32Array(2 * keys.length)
    this.#shift = shiftOf(2 * keys.length)
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i] as number
      if (key === 0) continue
      const at = this.#find(key)
      this.#keys[at] = key
      this.#counts[at] = counts[i] as number
    }
  }
}

function shiftOf(size: number): number {
  return 32 - Math.log2(size)
}
