/**
 * The order in which Kafka Streams' test driver takes records. Each topic is a queue, and the queue whose first record
 * is oldest goes next. Which of two equally old records goes first depends on the heap in which Java keeps the queues,
 * and results may depend on that. So this is the same heap.
 */
interface Queue<T> {
  readonly records: T[]
  from: number
}

export class OldestFirst<T> {
  readonly #timestampOf: (record: T) => number
  readonly #queues = new Map<string, Queue<T>>()
  /** The queues that are not empty. */
  readonly #heap: Array<Queue<T>> = []

  constructor(timestampOf: (record: T) => number) {
    this.#timestampOf = timestampOf
  }

  get isEmpty(): boolean {
    return this.#heap.length === 0
  }

  add(queueName: string, record: T): void {
    const queue = this.#queues.get(queueName) ?? { records: [], from: 0 }
    this.#queues.set(queueName, queue)
    queue.records.push(record)
    if (queue.records.length - queue.from === 1) this.#offer(queue)
  }

  take(): T | undefined {
    const queue = this.#poll()
    if (queue === undefined) return undefined
    const record = queue.records[queue.from++] as T
    if (queue.from < queue.records.length) {
      this.#offer(queue)
    } else {
      queue.records.length = 0
      queue.from = 0
    }
    return record
  }

  #time(queue: Queue<T>): number {
    return this.#timestampOf(queue.records[queue.from] as T)
  }

  #offer(queue: Queue<T>): void {
    const heap = this.#heap
    let at = heap.length
    while (at > 0) {
      const parent = (at - 1) >>> 1
      const above = heap[parent] as Queue<T>
      if (this.#time(queue) >= this.#time(above)) break
      heap[at] = above
      at = parent
    }
    heap[at] = queue
  }

  #poll(): Queue<T> | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    let at = 0
    while (at < heap.length >>> 1) {
      let child = 2 * at + 1
      const right = heap[child + 1]
      if (right !== undefined && this.#time(heap[child] as Queue<T>) > this.#time(right)) child++
      if (this.#time(last) <= this.#time(heap[child] as Queue<T>)) break
      heap[at] = heap[child] as Queue<T>
      at = child
    }
    heap[at] = last
    return first
  }
}
