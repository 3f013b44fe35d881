/**
 * The records of a task that came and are not done: running, behind one of their key, or before their turn. A heap by
 * watermark, because what must not be overtaken is the oldest of them, whatever order they came and finish in.
 */
export interface Waiting {
  readonly watermark: number
  done: boolean
}

export class WaitingRecords {
  readonly #heap: Waiting[] = []

  add(watermark: number): Waiting {
    const entry: Waiting = { watermark, done: false }
    const heap = this.#heap
    let at = heap.length
    heap.push(entry)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if ((heap[parent] as Waiting).watermark <= watermark) break
      heap[at] = heap[parent] as Waiting
      at = parent
    }
    heap[at] = entry
    return entry
  }

  /** Watermark of the oldest that is not done; Infinity when all are. */
  get oldest(): number {
    const heap = this.#heap
    while (heap.length > 0 && (heap[0] as Waiting).done) this.#pop()
    return heap[0]?.watermark ?? Number.POSITIVE_INFINITY
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop() as Waiting
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && (heap[child + 1] as Waiting).watermark < (heap[child] as Waiting).watermark)
        child++
      if ((heap[child] as Waiting).watermark >= last.watermark) break
      heap[at] = heap[child] as Waiting
      at = child
    }
    heap[at] = last
  }
}
