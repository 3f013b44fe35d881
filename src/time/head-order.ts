/** Says that a partition has nothing buffered. */
export const noHead = Number.POSITIVE_INFINITY

/**
 * Which of the buffered heads is the oldest: a tournament over the partitions by event time, then by rank, so that a
 * replay meets equal timestamps in the same order. A change costs the logarithm of the number of partitions. A head that
 * is withheld takes no part in it until it is released.
 */
export class HeadOrder {
  #capacity: number
  /** Of the heads that take part; `noHead` for those that do not. */
  #timestamps: Float64Array
  /** Of the heads that are withheld. */
  #withheld: Float64Array
  #ranks: Int32Array
  /** How many are withheld. */
  withheld = 0
  /** Winner of every match; the leaves are the slots themselves. */
  #winners: Int32Array

  /** `capacity` is a power of two. */
  constructor(capacity: number) {
    this.#capacity = capacity
    this.#timestamps = new Float64Array(capacity).fill(noHead)
    this.#withheld = new Float64Array(capacity).fill(noHead)
    this.#ranks = new Int32Array(capacity)
    this.#winners = new Int32Array(capacity * 2)
    this.#replayAll()
  }

  /** The slot with the oldest head that may go, or -1 when there is none. */
  first(): number {
    const winner = this.#winners[1] as number
    return this.#timestamps[winner] === noHead ? -1 : winner
  }

  timestamp(slot: number): number {
    const timestamp = this.#timestamps[slot] as number
    return timestamp === noHead ? (this.#withheld[slot] as number) : timestamp
  }

  isWithheld(slot: number): boolean {
    return this.#withheld[slot] !== noHead
  }

  /** The head of this slot, if it has one, is passed over. */
  withhold(slot: number): void {
    const timestamp = this.#timestamps[slot] as number
    if (timestamp === noHead) return
    this.#withheld[slot] = timestamp
    this.withheld++
    this.set(slot, noHead)
  }

  release(slot: number): void {
    const timestamp = this.#withheld[slot] as number
    if (timestamp === noHead) return
    this.#withheld[slot] = noHead
    this.withheld--
    this.set(slot, timestamp)
  }

  /** The slot has no head any more. */
  clear(slot: number): void {
    if (this.isWithheld(slot)) this.withheld--
    this.#withheld[slot] = noHead
    this.set(slot, noHead)
  }

  /** Of a slot that is not withheld. */
  set(slot: number, timestamp: number): void {
    this.#timestamps[slot] = timestamp
    const winners = this.#winners
    const timestamps = this.#timestamps
    let at = (this.#capacity + slot) >> 1
    while (at >= 1) {
      const left = winners[at * 2] as number
      const right = winners[at * 2 + 1] as number
      const l = timestamps[left] as number
      const r = timestamps[right] as number
      const winner =
        l < r || (l === r && (this.#ranks[left] as number) <= (this.#ranks[right] as number)) ? left : right
      // Where the changed slot neither wins nor won before, nothing changes further up.
      if (winner !== slot && winners[at] === winner) return
      winners[at] = winner
      at >>= 1
    }
  }

  /** Gives the order of equal timestamps anew. */
  rank(slotsInOrder: readonly number[]): void {
    for (let i = 0; i < slotsInOrder.length; i++) this.#ranks[slotsInOrder[i] as number] = i
    this.#replayAll()
  }

  grow(capacity: number): void {
    const timestamps = new Float64Array(capacity).fill(noHead)
    timestamps.set(this.#timestamps)
    const withheld = new Float64Array(capacity).fill(noHead)
    withheld.set(this.#withheld)
    const ranks = new Int32Array(capacity)
    ranks.set(this.#ranks)
    this.#capacity = capacity
    this.#timestamps = timestamps
    this.#withheld = withheld
    this.#ranks = ranks
    this.#winners = new Int32Array(capacity * 2)
    this.#replayAll()
  }

  #replayAll(): void {
    const winners = this.#winners
    for (let slot = 0; slot < this.#capacity; slot++) winners[this.#capacity + slot] = slot
    for (let at = this.#capacity - 1; at >= 1; at--) {
      const left = winners[at * 2] as number
      const right = winners[at * 2 + 1] as number
      winners[at] = this.#before(left, right) ? left : right
    }
  }

  #before(left: number, right: number): boolean {
    const l = this.#timestamps[left] as number
    const r = this.#timestamps[right] as number
    return l < r || (l === r && (this.#ranks[left] as number) <= (this.#ranks[right] as number))
  }
}
