/** Reads the coordinator topic from its beginning, record by record, and notices when it is another one. */
import type { BrokerPort, FetchedPartition } from '../../broker/port.ts'
import { RecordCursor } from '../../broker/wire/record-batch.ts'
import type { RawRecord } from '../events.ts'

const maxBytes = 1024 * 1024
const text = new TextDecoder()

export interface ReadResult {
  readonly records: readonly RawRecord[]
  /** Nothing is left to read. */
  readonly reachedEnd: boolean
  /** The offset asked for does not exist, or the topic does not. */
  readonly lost: boolean
}

export class LogReader {
  readonly #broker: BrokerPort
  readonly #topic: string
  readonly #cursor = new RecordCursor()
  #position = 0
  #maxBytes = maxBytes

  constructor(broker: BrokerPort, topic: string) {
    this.#broker = broker
    this.#topic = topic
  }

  get position(): number {
    return this.#position
  }

  /** From the beginning, wherever that is now. */
  async rewind(): Promise<void> {
    const [first] = await this.#broker.listOffsets([{ topic: this.#topic, partition: 0 }], 'earliest')
    this.#position = first?.offset ?? 0
  }

  /** The end of the topic at this moment. */
  async end(): Promise<number> {
    const [last] = await this.#broker.listOffsets([{ topic: this.#topic, partition: 0 }], 'latest')
    return last?.offset ?? 0
  }

  async read(maxWaitMs: number, signal: AbortSignal): Promise<ReadResult> {
    const asked = this.#position
    const [fetched] = await this.#broker.fetch({
      partitions: [{ topic: this.#topic, partition: 0, offset: asked, maxBytes: this.#maxBytes }],
      maxWaitMs,
      maxBytes: this.#maxBytes,
      isolation: 'read_uncommitted',
      signal,
    })
    // A rewind while the answer was under way: it is no answer to what is wanted now.
    if (fetched === undefined || asked !== this.#position) return { records: [], reachedEnd: false, lost: false }
    if (fetched.error !== undefined) return { records: [], reachedEnd: false, lost: true }
    const records = this.#recordsOf(fetched)
    // Offsets that only grow: an end before the position belongs to another topic of this name.
    const lost = fetched.highWatermark >= 0 && fetched.highWatermark < asked
    return { records, reachedEnd: this.#position >= fetched.highWatermark, lost }
  }

  #recordsOf({ records: bytes }: FetchedPartition): RawRecord[] {
    const cursor = this.#cursor
    const records: RawRecord[] = []
    cursor.reset(bytes, this.#position, [], 'read_uncommitted')
    while (cursor.next()) {
      const { keyStart, keyEnd, valueStart, valueEnd, offset } = cursor
      const key = keyStart < 0 ? '' : text.decode(cursor.bytes.subarray(keyStart, keyEnd))
      const value = valueStart < 0 ? null : text.decode(cursor.bytes.subarray(valueStart, valueEnd))
      records.push({ offset, key, value, timestamp: cursor.timestamp })
    }
    const progress = cursor.position > this.#position
    if (!progress && bytes.length > 0) this.#maxBytes *= 2
    else if (progress) this.#maxBytes = maxBytes
    this.#position = Math.max(this.#position, cursor.position)
    return records
  }
}
