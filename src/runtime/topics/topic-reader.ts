/** Reads the committed records of a topic, one partition's in the order of their offsets. */
import { setTimeout as sleep } from 'node:timers/promises'
import { EngineError, messageOf } from '../../base/errors.ts'
import type { BrokerPort, FetchedPartition } from '../../broker/port.ts'
import { decodeHeaders, RecordCursor } from '../../broker/wire/record-batch.ts'
import { askAgain } from '../ask-again.ts'
import type { Serde } from '../../serde/serde.ts'
import { whenKnown } from '../../serde/when-known.ts'
import type { TopicRecord } from './records.ts'
import type { SerdePair } from './topic-serdes.ts'

const fetchWaitMs = 250
const retryAfterMs = 500
/** How often the topic is looked up again: it may come into being, or grow, while it is read. */
const lookUpEveryMs = 3000
const maxFetchBytes = 8 * 1024 * 1024
const maxPartitionBytes = 1024 * 1024

export interface TopicReaderOptions {
  readonly broker: BrokerPort
  readonly topic: string
  readonly serdes: SerdePair
  readonly from: 'earliest' | 'latest'
  readonly signal: AbortSignal
  /** Milliseconds of a clock that is never put back. */
  readonly monotonic: () => number
}

interface ReadPartition {
  readonly topic: string
  readonly partition: number
  position: number
}

type Reading = AsyncGenerator<TopicRecord, void, undefined>

export class TopicReader {
  readonly #o: TopicReaderOptions
  readonly #partitions = new Map<number, ReadPartition>()
  #lookedUpAt = Number.NEGATIVE_INFINITY
  #hasBegun = false

  constructor(options: TopicReaderOptions) {
    this.#o = options
  }

  /**
   * Up to what is committed at this moment.
   * @throws EngineError `BROKER_UNREACHABLE` where the broker does not show all of it.
   */
  async *toTheEnd(): Reading {
    const { broker, signal } = this.#o
    await this.#lookUp()
    const partitions = [...this.#partitions.values()]
    if (partitions.length === 0) return
    const ends = await broker.listOffsets(partitions, 'stable')
    for (const { partition, offset: end } of ends) {
      const read = this.#partitions.get(partition)
      for (let vain = 0; read && read.position < end && !signal.aborted; ) {
        const before = read.position
        for await (const record of this.#fetch([read])) {
          if (record.offset < end) yield record
        }
        // The topic is gone.
        if (!this.#partitions.has(partition)) break
        vain = read.position === before ? vain + 1 : 0
        if (vain > 0) await askAgain(read, vain)
      }
    }
  }

  /** On and on, until the signal. A broker that cannot be reached for the moment is asked again. */
  async *onAndOn(): Reading {
    const { signal, monotonic } = this.#o
    while (!signal.aborted) {
      try {
        if (monotonic() - this.#lookedUpAt > lookUpEveryMs) await this.#lookUp()
        if (this.#partitions.size === 0) await sleep(fetchWaitMs, undefined, { signal })
        else yield* this.#fetch([...this.#partitions.values()])
      } catch (error) {
        if (signal.aborted) return
        const { errorClass } = error as { errorClass?: string }
        if (errorClass !== 'retriable' && errorClass !== 'unreachable') throw error
        await sleep(retryAfterMs)
      }
    }
  }

  async #lookUp(): Promise<void> {
    const { broker, topic, from, monotonic } = this.#o
    const [found] = await broker.topics([topic])
    const fresh: ReadPartition[] = []
    for (let partition = 0; partition < (found?.partitions ?? 0); partition++) {
      if (!this.#partitions.has(partition)) fresh.push({ topic, partition, position: 0 })
    }
    // What comes into being while it is read was not there at the beginning: all of it is news.
    const at = from === 'latest' && !this.#hasBegun ? 'stable' : 'earliest'
    const starts = fresh.length === 0 ? [] : await broker.listOffsets(fresh, at)
    for (const { partition, offset } of starts) this.#partitions.set(partition, { topic, partition, position: offset })
    this.#hasBegun = true
    // A topic that is still to come is what keeps a reader waiting: it is looked for at every turn.
    if (found) this.#lookedUpAt = monotonic()
  }

  async *#fetch(partitions: readonly ReadPartition[]): Reading {
    const { broker, signal } = this.#o
    const fetched = await broker.fetch({
      partitions: partitions.map(({ topic, partition, position }) => ({
        topic,
        partition,
        offset: position,
        maxBytes: maxPartitionBytes,
      })),
      maxWaitMs: fetchWaitMs,
      maxBytes: maxFetchBytes,
      isolation: 'read_committed',
      signal,
    })
    for (const answer of fetched) {
      const partition = this.#partitions.get(answer.partition)
      if (partition) yield* this.#take(partition, answer)
    }
  }

  async *#take(partition: ReadPartition, answer: FetchedPartition): Reading {
    if (answer.error !== undefined) {
      // Retention has deleted what was to be read next, or the topic is gone: go on with what is there.
      if (answer.error === 'OFFSET_OUT_OF_RANGE') partition.position = Math.max(answer.logStartOffset, 0)
      else this.#partitions.delete(partition.partition)
      return
    }
    const cursor = new RecordCursor()
    cursor.reset(answer.records, partition.position, answer.aborted, 'read_committed')
    while (cursor.next()) {
      const record = await this.#decoded(partition.partition, cursor)
      partition.position = cursor.position
      if (this.#o.signal.aborted) return
      yield record
    }
    partition.position = cursor.position
  }

  async #decoded(partition: number, cursor: RecordCursor): Promise<TopicRecord> {
    const { topic, serdes } = this.#o
    const { bytes, offset } = cursor
    try {
      return {
        topic,
        partition,
        offset,
        key: await part(serdes.key, bytes, cursor.keyStart, cursor.keyEnd),
        value: await part(serdes.value, bytes, cursor.valueStart, cursor.valueEnd),
        timestamp: cursor.timestamp,
        headers: cursor.headerCount === 0 ? [] : decodeHeaders(bytes, cursor.headersStart, cursor.headersEnd),
      }
    } catch (error) {
      const why = messageOf(error).replace(/\.$/, '')
      const message = `The record at offset ${offset} of ${topic}, partition ${partition}, cannot be decoded: ${why}. Give the serdes it was written with.`
      throw new EngineError('DECODE_FAILED', message, { cause: error })
    }
  }
}

async function part(serde: Serde<unknown>, bytes: Uint8Array, start: number, end: number): Promise<unknown> {
  if (start < 0) return null
  return await whenKnown(() => serde.deserialize(bytes.subarray(start, end)))
}
