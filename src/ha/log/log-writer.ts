/**
 * Appends to the coordinator topic, each record at most once: what does not come back through the log is decided anew by
 * the coordinator, so nothing is kept and sent again later, when it may no longer be meant.
 */
import type { Clock } from '../../base/clock.ts'
import type { BrokerPort } from '../../broker/port.ts'
import { ProducerStamps } from '../../broker/producer-stamps.ts'
import { noHeaders } from '../../broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../broker/wire/record-batch.ts'
import type { Encoded } from './records.ts'

interface Queued {
  readonly records: readonly Encoded[]
  readonly done?: (offset: number) => void
  readonly failed?: (error: unknown) => void
}

const text = new TextEncoder()

export class LogWriter {
  readonly #broker: BrokerPort
  readonly #topic: string
  readonly #clock: Clock
  readonly #failed: (error: unknown) => void
  readonly #stamps: ProducerStamps
  #queue: Queued[] = []
  #sending = false
  #closed = false

  /** `failed` is told of every write that did not succeed, or of which nobody knows. */
  constructor(broker: BrokerPort, topic: string, clock: Clock, failed: (error: unknown) => void) {
    this.#broker = broker
    this.#stamps = new ProducerStamps(broker)
    this.#topic = topic
    this.#clock = clock
    this.#failed = failed
  }

  append(records: readonly Encoded[]): void {
    this.#enqueue({ records })
  }

  /** Resolves with the offset. */
  appendOne(record: Encoded): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#enqueue({ records: [record], done: resolve, failed: reject })
    })
  }

  close(): void {
    this.#closed = true
    this.#queue = []
  }

  #enqueue(queued: Queued): void {
    if (this.#closed) return
    this.#queue.push(queued)
    if (!this.#sending) void this.#send()
  }

  async #send(): Promise<void> {
    this.#sending = true
    while (this.#queue.length > 0 && !this.#closed) {
      const batch = this.#queue
      this.#queue = []
      try {
        const baseOffset = await this.#write(batch.flatMap((queued) => queued.records))
        let offset = baseOffset
        for (const { records, done } of batch) {
          done?.(offset)
          offset += records.length
        }
      } catch (error) {
        this.#stamps.forget()
        for (const { failed } of batch) failed?.(error)
        if (!this.#closed) this.#failed(error)
      }
    }
    this.#sending = false
  }

  async #write(encoded: readonly Encoded[]): Promise<number> {
    const builder = new RecordBatchBuilder()
    const now = this.#clock.now()
    for (const { key, value } of encoded) {
      builder.append(now, text.encode(key), value === null ? null : text.encode(value), noHeaders)
    }
    const batches = [{ topic: this.#topic, partition: 0, records: builder.finish() }]
    await this.#stamps.stamp(batches)
    const [produced] = await this.#broker.produce({ transactionalId: null, batches })
    return produced?.baseOffset ?? -1
  }
}
