/** Reads the committed records of topics, from their first one on, in the order of their offsets per partition. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { BrokerPort, FetchedPartition } from '../../broker/port.ts'
import { RecordCursor } from '../../broker/wire/record-batch.ts'
import { askAgain } from '../../runtime/ask-again.ts'

const fetchWaitMs = 250
const retryAfterMs = 500
/** How often a topic is looked up again: it may come into being, or grow, while it is read. */
const lookUpEveryMs = 3000
const maxFetchBytes = 8 * 1024 * 1024

interface ReadPartition {
  readonly topic: string
  readonly partition: number
  position: number
}

export interface ReaderOptions {
  readonly broker: BrokerPort
  readonly topics: readonly string[]
  /** Gets the cursor before its first record and walks it to its end. */
  readonly onRecords: (topic: string, partition: number, cursor: RecordCursor) => void | Promise<void>
}

export class CommittedReader {
  readonly #options: ReaderOptions
  readonly #partitions = new Map<string, ReadPartition>()
  readonly #stop = new AbortController()
  readonly #cursor = new RecordCursor()
  #lookedUpAt = Number.NEGATIVE_INFINITY
  #running: Promise<void> | undefined

  constructor(options: ReaderOptions) {
    this.#options = options
  }

  /** Begins to read in the background; what goes wrong shows in `finish` and in `stop`. */
  start(): void {
    this.#running ??= this.#loop()
    // The loop is awaited at the end; until then its failure must not count as unhandled.
    this.#running.catch(() => undefined)
  }

  /**
   * Reads up to what is committed at this moment, then ends.
   * @throws EngineError `BROKER_UNREACHABLE` where the broker does not show all of it.
   */
  async finish(): Promise<void> {
    await this.stop()
    await this.#lookUp()
    const partitions = [...this.#partitions.values()]
    if (partitions.length === 0) return
    const ends = await this.#options.broker.listOffsets(partitions, 'stable')
    for (const { topic, partition, offset: end } of ends) {
      const id = `${topic}:${partition}`
      for (let vain = 0; ; ) {
        const read = this.#partitions.get(id)
        // Undefined: the topic is gone.
        if (read === undefined || read.position >= end) break
        const before = read.position
        await this.#fetch([read])
        vain = read.position === before ? vain + 1 : 0
        if (vain > 0) await askAgain(read, vain)
      }
    }
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  async #loop(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      try {
        if (performance.now() - this.#lookedUpAt > lookUpEveryMs) await this.#lookUp()
        if (this.#partitions.size === 0) await sleep(fetchWaitMs, undefined, { signal })
        else await this.#fetch([...this.#partitions.values()], signal)
      } catch (error) {
        if (signal.aborted) return
        if (!isTransient(error)) throw error
        await sleep(retryAfterMs)
      }
    }
  }

  async #lookUp(): Promise<void> {
    const { broker, topics } = this.#options
    const found = await broker.topics(topics)
    const fresh: ReadPartition[] = []
    for (const { topic, partitions } of found) {
      for (let partition = 0; partition < partitions; partition++) {
        if (!this.#partitions.has(`${topic}:${partition}`)) fresh.push({ topic, partition, position: 0 })
      }
    }
    const starts = fresh.length === 0 ? [] : await broker.listOffsets(fresh, 'earliest')
    for (const { topic, partition, offset } of starts) {
      this.#partitions.set(`${topic}:${partition}`, { topic, partition, position: offset })
    }
    // A topic that is still to come is what keeps a reader waiting: it is looked for at every turn.
    if (found.length === topics.length) this.#lookedUpAt = performance.now()
  }

  async #fetch(partitions: readonly ReadPartition[], signal?: AbortSignal): Promise<void> {
    const fetched = await this.#options.broker.fetch({
      partitions: partitions.map(({ topic, partition, position }) => ({
        topic,
        partition,
        offset: position,
        maxBytes: maxFetchBytes / 8,
      })),
      maxWaitMs: fetchWaitMs,
      maxBytes: maxFetchBytes,
      isolation: 'read_committed',
      ...(signal && { signal }),
    })
    for (const answer of fetched) {
      const partition = this.#partitions.get(`${answer.topic}:${answer.partition}`)
      if (partition) await this.#take(partition, answer)
    }
  }

  async #take(partition: ReadPartition, answer: FetchedPartition): Promise<void> {
    if (answer.error !== undefined) {
      // Retention has deleted what was to be read next, or the topic is gone: go on with what is there.
      if (answer.error === 'OFFSET_OUT_OF_RANGE') partition.position = Math.max(answer.logStartOffset, 0)
      else this.#partitions.delete(`${partition.topic}:${partition.partition}`)
      return
    }
    const cursor = this.#cursor
    cursor.reset(answer.records, partition.position, answer.aborted, 'read_committed')
    await this.#options.onRecords(partition.topic, partition.partition, cursor)
    partition.position = cursor.position
  }
}

function isTransient(error: unknown): boolean {
  const { errorClass } = error as { errorClass?: string }
  return errorClass === 'retriable' || errorClass === 'unreachable'
}
