/** Records in and out through the broker port, for tests: small, and without the engine. */
import type { BrokerPort, Isolation, ProducerIdentity } from '../../src/broker/port.ts'
import { RecordBatchBuilder, RecordCursor, stampBatch } from '../../src/broker/wire/record-batch.ts'

export interface ReadRecord {
  readonly offset: number
  readonly timestamp: number
  readonly key: string | null
  readonly value: string | null
}

export interface TestRecord {
  readonly key?: string | null
  readonly value: string | null
  readonly timestamp?: number
}

/** One uncompressed batch of these records. */
export function batchOf(records: readonly TestRecord[]): Uint8Array<ArrayBuffer> {
  const builder = new RecordBatchBuilder()
  for (const { key, value, timestamp } of records) {
    builder.append(timestamp ?? 1_700_000_000_000, bytesOf(key ?? null), bytesOf(value), [])
  }
  return builder.finish()
}

function bytesOf(text: string | null): Uint8Array | null {
  return text === null ? null : Buffer.from(text)
}

/** Writes with one identity and keeps its sequence numbers. */
export class TestProducer {
  readonly #port: BrokerPort
  readonly #transactionalId: string | null
  #identity: ProducerIdentity
  readonly #sequences = new Map<string, number>()

  private constructor(port: BrokerPort, transactionalId: string | null, identity: ProducerIdentity) {
    this.#port = port
    this.#transactionalId = transactionalId
    this.#identity = identity
  }

  static async open(
    port: BrokerPort,
    transactionalId: string | null = null,
    timeoutMs = 60_000,
  ): Promise<TestProducer> {
    return new TestProducer(port, transactionalId, await port.initProducer(transactionalId, timeoutMs))
  }

  get identity(): ProducerIdentity {
    return this.#identity
  }

  /** Answers the base offset of what was written. */
  async write(topic: string, partition: number, records: readonly TestRecord[]): Promise<number> {
    const batch = this.stamped(topic, partition, records)
    const [written] = await this.#port.produce({
      transactionalId: this.#transactionalId,
      batches: [{ topic, partition, records: batch }],
    })
    return written?.baseOffset ?? -1
  }

  stamped(topic: string, partition: number, records: readonly TestRecord[]): Uint8Array<ArrayBuffer> {
    const batch = batchOf(records)
    const key = `${topic}:${partition}`
    const baseSequence = this.#sequences.get(key) ?? 0
    this.#sequences.set(key, baseSequence + records.length)
    stampBatch(batch, { ...this.#identity, baseSequence, transactional: this.#transactionalId !== null })
    return batch
  }

  async end(commit: boolean): Promise<void> {
    const next = await this.#port.endTransaction(this.#transactionalId ?? '', this.#identity, commit)
    if (next.producerEpoch !== this.#identity.producerEpoch || next.producerId !== this.#identity.producerId) {
      this.#sequences.clear()
    }
    this.#identity = next
  }
}

/** Everything in a partition from an offset on, up to its end as this isolation sees it. */
export async function readAll(
  port: BrokerPort,
  topic: string,
  partition: number,
  isolation: Isolation = 'read_committed',
  fromOffset = 0,
): Promise<ReadRecord[]> {
  const at = isolation === 'read_committed' ? 'stable' : 'latest'
  const [end] = await port.listOffsets([{ topic, partition }], at)
  const read: ReadRecord[] = []
  const cursor = new RecordCursor()
  let offset = fromOffset
  while (end !== undefined && offset < end.offset) {
    const fetched = await port.fetch({
      partitions: [{ topic, partition, offset, maxBytes: 1 << 20 }],
      maxWaitMs: 500,
      maxBytes: 1 << 24,
      isolation,
    })
    for (const { records, aborted, error } of fetched) {
      if (error !== undefined) throw new TypeError(`${topic}:${partition} answered ${error}`)
      cursor.reset(records, offset, aborted, isolation)
      while (cursor.next()) {
        const text = (start: number, stop: number): string | null =>
          start < 0 ? null : Buffer.from(cursor.bytes.subarray(start, stop)).toString()
        read.push({
          offset: cursor.offset,
          timestamp: cursor.timestamp,
          key: text(cursor.keyStart, cursor.keyEnd),
          value: text(cursor.valueStart, cursor.valueEnd),
        })
      }
      offset = cursor.position
    }
  }
  return read
}

/**
 * Waits until every ended transaction of a partition is visible: a broker answers the end of a transaction before its
 * markers are written.
 */
export async function transactionsSettled(port: BrokerPort, topic: string, partition: number): Promise<number> {
  for (const until = performance.now() + 60_000; ; ) {
    const [stable] = await port.listOffsets([{ topic, partition }], 'stable')
    const [latest] = await port.listOffsets([{ topic, partition }], 'latest')
    if (stable && stable.offset === latest?.offset) return stable.offset
    if (performance.now() > until) throw new Error(`a transaction of ${topic}:${partition} stays open`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
