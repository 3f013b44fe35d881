/** Says that a partition has nothing buffered. */
export const noHead = Number.POSITIVE_INFINITY

/**
 * Which of the buffered heads is the oldest: a tournament over the partitions by event time, then by rank, so that a
 * replay meets equal timestamps in the same order. A change costs the logarithm of the number of partitions.
 */
export class HeadOrder {
  #capacity: number
  #timestamps: Float64Array
  #ranks: Int32Array
  /** Winner of every match; the leaves are the slots themselves. */
  #winners: Int32Array

  /** `capacity` is a power of two. */
  constructor(capacity: number) {
    this.#capacity = capacity
    this.#timestamps = new Float64Array(capacity).fill(noHead)
    this.#ranks = new Int32Array(capacity)
    this.#winners = new Int32Array(capacity * 2)
    this.#replayAll()
  }

  /** The slot with the oldest head, or -1 when nothing is buffered. */
  first(): number {
    const winner = this.#winners[1] as number
    return this.#timestamps[winner] === noHead ? -1 : winner
  }

  timestamp(slot: number): number {
    return this.#timestamps[slot] as number
  }

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
    const ranks = new Int32Array(capacity)
    ranks.set(this.#ranks)
    this.#capacity = capacity
    this.#timestamps = timestamps
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
