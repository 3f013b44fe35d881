/**
 * Records of several topics, written in the order of time: the first ones in batches before anything runs, the others one
 * after the other while it runs, each as soon as the one before is there.
 */
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import type { Random } from '../../src/base/random.ts'

export interface FedRecord {
  readonly topic: string
  readonly partition: number
  readonly timestamp: number
  readonly key: string
  readonly value: unknown
}

export interface FeedHost {
  readonly client: BrokerPort
  readonly random: Random
  /** Calls after so many milliseconds of the simulation. */
  after(ms: number, call: () => void): void
  /** Longest pause between two records that come while it runs, in milliseconds. Default 12. */
  readonly longestPauseMs?: number
  /** So long nothing comes at first, for it to be ready. Default 0. */
  readonly firstPauseMs?: number
  /** The record is at the broker, or about to be with its batch. */
  written(record: FedRecord): void
}

export class OrderedFeed {
  readonly #host: FeedHost
  readonly #builders = new Map<string, RecordBatchBuilder>()
  readonly #live: FedRecord[] = []
  #isLive = false

  constructor(host: FeedHost) {
    this.#host = host
  }

  async put(record: FedRecord): Promise<void> {
    if (this.#isLive) {
      this.#live.push(record)
      return
    }
    const { topic, partition, timestamp, key, value } = record
    const at = `${topic}:${partition}`
    const builder = this.#builders.get(at) ?? new RecordBatchBuilder()
    this.#builders.set(at, builder)
    builder.append(timestamp, Buffer.from(key), Buffer.from(JSON.stringify(value)), noHeaders)
    this.#host.written(record)
    if (this.#host.random.chance(0.3)) await this.#flush(at)
  }

  /** What is put from now on comes while the application runs. */
  async goLive(): Promise<void> {
    for (const at of [...this.#builders.keys()]) await this.#flush(at)
    this.#isLive = true
  }

  /** To be called once all is put. */
  async end(): Promise<void> {
    if (!this.#isLive) await this.goLive()
    else this.#host.after(this.#host.firstPauseMs ?? 0, () => this.#next())
  }

  #next(): void {
    const record = this.#live.shift()
    if (record === undefined) return
    const { random, longestPauseMs = 12 } = this.#host
    // Some come close behind one another: a row and the record that needs it.
    this.#host.after(random.chance(0.5) ? 0 : random.next() * longestPauseMs, () => {
      const { topic, partition, timestamp, key, value } = record
      const builder = new RecordBatchBuilder()
      builder.append(timestamp, Buffer.from(key), Buffer.from(JSON.stringify(value)), noHeaders)
      const batches = [{ topic, partition, records: builder.finish() }]
      void this.#host.client.produce({ transactionalId: null, batches }).then(() => {
        this.#host.written(record)
        this.#next()
      })
    })
  }

  async #flush(at: string): Promise<void> {
    const [topic, partition] = at.split(':') as [string, string]
    const records = (this.#builders.get(at) as RecordBatchBuilder).finish()
    this.#builders.delete(at)
    await this.#host.client.produce({
      transactionalId: null,
      batches: [{ topic, partition: Number(partition), records }],
    })
  }
}
