/**
 * The records of a task that came and are not done: running, behind one of their key, or before their turn. A heap by
 * watermark, because what must not be overtaken is the oldest of them, whatever order they came and finish in.
 */
export interface Waiting {
  /** How far the task may be advanced while this record waits: to what came before it, since timers fire behind a record. */
  readonly before: number
  done: boolean
}

export class WaitingRecords {
  readonly #heap: Waiting[] = []

  add(before: number): Waiting {
    const entry: Waiting = { before, done: false }
    const heap = this.#heap
    let at = heap.length
    heap.push(entry)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if ((heap[parent] as Waiting).before <= before) break
      heap[at] = heap[parent] as Waiting
      at = parent
    }
    heap[at] = entry
    return entry
  }

  /** How far all that wait allow; Infinity when none does. */
  get oldest(): number {
    const heap = this.#heap
    while (heap.length > 0 && (heap[0] as Waiting).done) this.#pop()
    return heap[0]?.before ?? Number.POSITIVE_INFINITY
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop() as Waiting
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && (heap[child + 1] as Waiting).before < (heap[child] as Waiting).before) child++
      if ((heap[child] as Waiting).before >= last.before) break
      heap[at] = heap[child] as Waiting
      at = child
    }
    heap[at] = last
  }
}
