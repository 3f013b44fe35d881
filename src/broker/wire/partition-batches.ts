/** Records for the partitions of one topic, collected into batches that the topic takes. */
import type { Headers } from './headers.ts'
import { RecordBatchBuilder } from './record-batch-builder.ts'

export interface BatchSizes {
  /** A batch is closed before it grows beyond this, unless it holds one record alone. */
  readonly most: number
  /** `max.message.bytes` of the topic; undefined where its settings may not be read. */
  readonly limit: number | undefined
}

export class PartitionBatches {
  readonly #builders: readonly RecordBatchBuilder[]
  readonly #most: number
  readonly #limit: number
  records = 0
  /** What all batches take together. */
  bytes = 0

  constructor(partitions: number, { most, limit = Number.POSITIVE_INFINITY }: BatchSizes) {
    this.#builders = Array.from({ length: partitions }, () => new RecordBatchBuilder())
    this.#most = Math.min(most, limit)
    this.#limit = limit
  }

  get partitions(): number {
    return this.#builders.length
  }

  /** `full`: what is there has to be taken first. A number: the record takes so many bytes, and the topic takes fewer. */
  add(
    partition: number,
    timestamp: number,
    key: Uint8Array | null,
    value: Uint8Array | null,
    headers: Headers,
  ): 'added' | 'full' | number {
    const builder = this.#builders[partition] as RecordBatchBuilder
    const before = builder.bytes
    builder.append(timestamp, key, value, headers)
    const { bytes } = builder
    const isAlone = builder.count === 1
    if (bytes > (isAlone ? this.#limit : this.#most)) {
      builder.dropLast(before)
      return isAlone ? bytes : 'full'
    }
    this.records++
    this.bytes += bytes - before
    return 'added'
  }

  /** The batches that have records, each with its number of them. They are empty afterwards. */
  take(): Array<{ readonly partition: number; readonly count: number; readonly records: Uint8Array<ArrayBuffer> }> {
    this.records = 0
    this.bytes = 0
    return this.#builders.flatMap((builder, partition) => {
      const { count } = builder
      return count === 0 ? [] : [{ partition, count, records: builder.finish() }]
    })
  }
}
