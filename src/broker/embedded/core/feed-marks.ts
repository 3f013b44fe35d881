import { batchHeader } from '../../wire/record-batch.ts'
import type { FeedMark } from '../../feed-marks.ts'
import { BrokerError, type ProduceRequest } from '../../port.ts'
import type { PartitionLog } from './partition-log.ts'
import type { JournalEntry } from './storage.ts'
import type { Topics } from './topics.ts'

type FeedEntry = Extract<JournalEntry, { kind: 'feed' }>

/** How many lines of which file are stored in which topic. */
export class FeedMarks {
  readonly #marks = new Map<string, FeedMark>()
  /** The journal's last write and the mark before it, while it is not known whether its records all arrived. */
  #last: { readonly entry: FeedEntry; readonly before: FeedMark | undefined } | undefined

  get(topic: string, file: string): number {
    return this.#marks.get(keyOf(topic, file))?.lines ?? 0
  }

  set({ topic, file, lines }: FeedMark): void {
    this.#marks.set(keyOf(topic, file), { topic, file, lines })
  }

  dropTopic(topic: string): void {
    for (const [key, mark] of this.#marks) if (mark.topic === topic) this.#marks.delete(key)
    if (this.#last?.entry.topic === topic) this.#last = undefined
  }

  restore(entry: FeedEntry): void {
    this.#last = { entry, before: this.#marks.get(keyOf(entry.topic, entry.file)) }
    this.set(entry)
  }

  /** The last write's mark was stored before its records: where these did not all arrive, both are taken back. */
  undoTornWrite(topics: Topics): void {
    if (this.#last === undefined) return
    const { entry, before } = this.#last
    this.#last = undefined
    const logOf = (partition: number) => topics.partition({ topic: entry.topic, partition }).log
    if (entry.writes.every(({ partition, to }) => logOf(partition).highWatermark >= to)) return
    for (const { partition, from } of entry.writes) logOf(partition).truncate(from)
    if (before === undefined) this.#marks.delete(keyOf(entry.topic, entry.file))
    else this.set(before)
  }

  snapshot(): JournalEntry[] {
    return [...this.#marks.values()].map((mark) => ({ kind: 'feed', ...mark, writes: [] }))
  }
}

/** Which offsets the batches of a fed write will take, by partition. */
export function plannedWrites(
  batches: ProduceRequest['batches'],
  topic: string,
  logOf: (partition: number) => PartitionLog,
): FeedEntry['writes'] {
  const writes = new Map<number, { partition: number; from: number; to: number }>()
  for (const batch of batches) {
    if (batch.topic !== topic) {
      throw new BrokerError('INVALID_REQUEST', `A feed of ${topic} cannot write to ${batch.topic}.`)
    }
    const { partition, records } = batch
    const from = logOf(partition).highWatermark
    const write = writes.get(partition) ?? { partition, from, to: from }
    for (let at = 0; at < records.length; ) {
      const { size, baseOffset, lastOffset } = batchHeader(records, at)
      write.to += lastOffset - baseOffset + 1
      at += size
    }
    writes.set(partition, write)
  }
  return [...writes.values()]
}

const keyOf = (topic: string, file: string): string => `${topic}\n${file}`
