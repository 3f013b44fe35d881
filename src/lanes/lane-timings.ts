/**
 * How long records take and how old they are, as histograms in the lane's block. Measured once a batch: what is seen of
 * its last record counts for all of them, so that the hot path pays for two looks at the clock and nothing per record.
 */
import type { Clock } from '../base/clock.ts'
import {
  type CounterLayout,
  latenessHistogram,
  processHistogram,
  sinkLatencyHistogram,
  sourceLatencyHistogram,
} from '../base/counters.ts'
import { eventTimeBounds, observe, processBounds } from '../base/histograms.ts'
import { batchField } from '../broker/wire/batch-header.ts'
import { type BatchPack, eachBatch } from '../broker/wire/batch-pack.ts'
import { readInt64 } from '../broker/wire/integers.ts'
import type { TransferReader } from './transfer.ts'

export class LaneTimings {
  readonly #layout: CounterLayout
  readonly #block: Float64Array
  readonly #clock: Clock
  readonly #sinks: ReadonlyMap<string, number>
  /** Of each origin topic its place in the layout, -1 where it has none. */
  #sources: readonly number[] = []

  constructor(layout: CounterLayout, block: Float64Array, clock: Clock) {
    this.#layout = layout
    this.#block = block
    this.#clock = clock
    this.#sinks = new Map(layout.sinkTopics.map((topic, i) => [topic, i]))
  }

  origins(topics: readonly string[]): void {
    this.#sources = topics.map((topic) => this.#layout.sourceTopics.indexOf(topic))
  }

  /** So many records were worked off since `began`; the reader stands at the last of them. */
  batch(began: number, records: number, subtopology: number, reader: TransferReader, fromBroker: boolean): void {
    const layout = this.#layout
    const block = this.#block
    const perRecord = (this.#clock.monotonic() - began) / 1000 / records
    observe(block, processHistogram(layout, subtopology), processBounds, perRecord, records)
    const topic = this.#sources[reader.originTopic] ?? -1
    const { timestamp, watermark } = reader
    if (!fromBroker || topic < 0 || timestamp < 0) return
    const age = Math.max(0, this.#clock.now() - timestamp) / 1000
    observe(block, sourceLatencyHistogram(layout, topic), eventTimeBounds, age, records)
    const late = watermark > timestamp ? (watermark - timestamp) / 1000 : 0
    observe(block, latenessHistogram(layout, topic), eventTimeBounds, late, records)
  }

  /** These batches leave for the broker. */
  sent(packs: readonly BatchPack[]): void {
    const now = this.#clock.now()
    for (const pack of packs) {
      eachBatch(pack, (topic, _, count, records) => {
        const sink = this.#sinks.get(topic)
        if (sink === undefined) return
        const age = Math.max(0, now - readInt64(records, batchField.maxTimestamp)) / 1000
        observe(this.#block, sinkLatencyHistogram(this.#layout, sink), eventTimeBounds, age, count)
      })
    }
  }
}
