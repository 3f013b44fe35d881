/** Offsets in their order, of which any may be done: how far all of them are. */
const firstCapacity = 64

export class OffsetQueue {
  #offsets = new Float64Array(firstCapacity)
  #isDone = new Uint8Array(firstCapacity)
  #from = 0
  #to = 0

  /** The first that is not done; undefined: all are. */
  get oldest(): number | undefined {
    while (this.#from < this.#to && this.#isDone[this.#from] === 1) this.#from++
    return this.#from === this.#to ? undefined : this.#offsets[this.#from]
  }

  /** Larger than all before it. */
  push(offset: number): void {
    if (this.#to === this.#offsets.length) this.#makeRoom()
    this.#offsets[this.#to] = offset
    this.#isDone[this.#to++] = 0
  }

  done(offset: number): void {
    let [low, high] = [this.#from, this.#to]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#offsets[middle] as number) < offset) low = middle + 1
      else high = middle
    }
    this.#isDone[low] = 1
  }

  #makeRoom(): void {
    void this.oldest
    const left = this.#to - this.#from
    const capacity = 2 * left > this.#offsets.length ? 2 * this.#offsets.length : this.#offsets.length
    const offsets = new Float64Array(capacity)
    offsets.set(this.#offsets.subarray(this.#from, this.#to))
    const isDone = new Uint8Array(capacity)
    isDone.set(this.#isDone.subarray(this.#from, this.#to))
    this.#offsets = offsets
    this.#isDone = isDone
    this.#from = 0
    this.#to = left
  }
}
