/**
 * The records of a task that came and are not done: running, behind one of their key, or before their turn. A heap by
 * watermark, because what must not be overtaken is the oldest of them, whatever order they came and finish in.
 */
export interface Waiting {
  /** How far the task may be advanced while this record waits: to what came before it, since timers fire behind a record. */
  readonly at: number
  /** Its number in the order of dispatch; Infinity for a timer. */
  readonly seq: number
  done: boolean
}

export class WaitingRecords {
  readonly #heap: Waiting[] = []

  add(at: number, seq: number): Waiting {
    const entry: Waiting = { at, seq, done: false }
    const heap = this.#heap
    let place = heap.length
    heap.push(entry)
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (!isOlder(entry, heap[parent] as Waiting)) break
      heap[place] = heap[parent] as Waiting
      place = parent
    }
    heap[place] = entry
    return entry
  }

  /** How far all that wait allow; Infinity when none does. */
  get oldestAt(): number {
    return this.#oldest?.at ?? Number.POSITIVE_INFINITY
  }

  get oldestSeq(): number {
    return this.#oldest?.seq ?? Number.POSITIVE_INFINITY
  }

  get #oldest(): Waiting | undefined {
    const heap = this.#heap
    while (heap.length > 0 && (heap[0] as Waiting).done) this.#pop()
    return heap[0]
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop() as Waiting
    if (heap.length === 0) return
    let place = 0
    for (;;) {
      let child = 2 * place + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isOlder(heap[child + 1] as Waiting, heap[child] as Waiting)) child++
      if (!isOlder(heap[child] as Waiting, last)) break
      heap[place] = heap[child] as Waiting
      place = child
    }
    heap[place] = last
  }
}

export function isOlder(a: Waiting, b: Waiting): boolean {
  return a.at < b.at || (a.at === b.at && a.seq < b.seq)
}
