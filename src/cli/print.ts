/** Writes the committed records of topics, from their first one on, as JSON lines. */
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BrokerPort, FetchedPartition } from '../broker/port.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import type { Headers } from '../wire/headers.ts'
import { decodeHeaders, RecordCursor } from '../wire/record-batch.ts'
import { jsonReplacer, PrintDecoder, textOrBase64 } from './topic-codec.ts'

const fetchWaitMs = 250
const retryAfterMs = 500
/** How often a topic is looked up again: it may come into being, or grow, while it is printed. */
const lookUpEveryMs = 3000
const maxFetchBytes = 8 * 1024 * 1024

interface PrintedPartition {
  readonly topic: string
  readonly partition: number
  readonly decoder: PrintDecoder
  position: number
}

export interface PrinterOptions {
  readonly broker: BrokerPort
  readonly topics: readonly string[]
  readonly topology: () => CompiledTopology | null
  readonly out: Writable
}

export class Printer {
  readonly #options: PrinterOptions
  readonly #partitions = new Map<string, PrintedPartition>()
  readonly #stop = new AbortController()
  readonly #cursor = new RecordCursor()
  #lookedUpAt = Number.NEGATIVE_INFINITY
  #running: Promise<void> | undefined

  constructor(options: PrinterOptions) {
    this.#options = options
  }

  /** Begins to print in the background; what goes wrong shows in `finish` and in `stop`. */
  start(): void {
    this.#running ??= this.#loop()
    // The loop is awaited at the end; until then its failure must not count as unhandled.
    this.#running.catch(() => undefined)
  }

  /** Prints up to what is committed at this moment, then ends. */
  async finish(): Promise<void> {
    await this.stop()
    await this.#lookUp()
    const partitions = [...this.#partitions.values()]
    if (partitions.length === 0) return
    const ends = await this.#options.broker.listOffsets(partitions, 'stable')
    for (const end of ends) {
      const partition = this.#partitions.get(`${end.topic}:${end.partition}`)
      while (partition && partition.position < end.offset) {
        const before = partition.position
        await this.#fetch([partition])
        // Markers alone can lie before the end: then nothing is left to print.
        if (partition.position === before) break
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
    const { broker, topics, topology } = this.#options
    this.#lookedUpAt = performance.now()
    const found = await broker.topics(topics)
    const fresh: PrintedPartition[] = []
    for (const { topic, partitions } of found) {
      for (let partition = 0; partition < partitions; partition++) {
        if (this.#partitions.has(`${topic}:${partition}`)) continue
        fresh.push({ topic, partition, decoder: new PrintDecoder(topology(), topic), position: 0 })
      }
    }
    if (fresh.length === 0) return
    const starts = await broker.listOffsets(fresh, 'earliest')
    for (const start of starts) {
      const partition = fresh.find((p) => p.topic === start.topic && p.partition === start.partition)
      if (!partition) continue
      partition.position = start.offset
      this.#partitions.set(`${start.topic}:${start.partition}`, partition)
    }
  }

  async #fetch(partitions: readonly PrintedPartition[], signal?: AbortSignal): Promise<void> {
    const fetched = await this.#options.broker.fetch({
      partitions: partitions.map(({ topic, partition, position }) => ({
        topic,
        partition,
        offset: position,
        maxBytes: maxFetchBytes / 8,
      })),
      maxWaitMs: signal === undefined ? 0 : fetchWaitMs,
      maxBytes: maxFetchBytes,
      isolation: 'read_committed',
      ...(signal && { signal }),
    })
    for (const answer of fetched) {
      const partition = this.#partitions.get(`${answer.topic}:${answer.partition}`)
      if (partition) await this.#print(partition, answer)
    }
  }

  async #print(partition: PrintedPartition, answer: FetchedPartition): Promise<void> {
    if (answer.error !== undefined) {
      // Retention has deleted what was to be printed next, or the topic is gone: go on with what is there.
      if (answer.error === 'OFFSET_OUT_OF_RANGE') partition.position = Math.max(answer.logStartOffset, 0)
      else this.#partitions.delete(`${partition.topic}:${partition.partition}`)
      return
    }
    const cursor = this.#cursor
    cursor.reset(answer.records, partition.position, answer.aborted, 'read_committed')
    let text = ''
    while (cursor.next()) text += `${renderRecord(partition, cursor)}\n`
    partition.position = cursor.position
    const { out } = this.#options
    if (text !== '' && !out.write(text)) await once(out, 'drain')
  }
}

function renderRecord(partition: PrintedPartition, cursor: RecordCursor): string {
  const { decoder } = partition
  const { bytes } = cursor
  const key = cursor.keyStart < 0 ? null : bytes.subarray(cursor.keyStart, cursor.keyEnd)
  const value = cursor.valueStart < 0 ? null : bytes.subarray(cursor.valueStart, cursor.valueEnd)
  const record = {
    topic: partition.topic,
    partition: partition.partition,
    offset: cursor.offset,
    key: decoder.key(key) ?? null,
    value: decoder.value(value) ?? null,
    timestamp: cursor.timestamp,
    ...(cursor.headerCount > 0 && {
      headers: shownHeaders(decodeHeaders(bytes.subarray(cursor.headersStart, cursor.headersEnd))),
    }),
  }
  return JSON.stringify(record, jsonReplacer)
}

function shownHeaders(headers: Headers): Array<readonly [string, string | null]> {
  return headers.map(([name, value]) => [name, value instanceof Uint8Array ? textOrBase64(value) : value])
}

function isTransient(error: unknown): boolean {
  const { errorClass } = error as { errorClass?: string }
  return errorClass === 'retriable' || errorClass === 'unreachable'
}
