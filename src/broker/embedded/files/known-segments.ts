/** What the journal says of the segments: which there are, and what each holds at least. */
import type { SegmentFacts } from '../core/segment-scan.ts'
import type { JournalRecord, SegmentRow } from './journal-frames.ts'

export interface Replacing {
  readonly old: readonly number[]
  readonly by: SegmentRow
}

export class KnownPartition {
  readonly topicId: string
  readonly partition: number
  readonly segments = new Map<number, SegmentFacts>()
  /** Base offsets of segments that were given up: a file that is left of them may go. */
  readonly gone = new Set<number>()
  /** The last replacement, while nothing that was written behind it says how it ended. */
  replacing: Replacing | undefined

  constructor(topicId: string, partition: number) {
    this.topicId = topicId
    this.partition = partition
  }

  set(baseOffset: number, size: number, chain: number): void {
    this.replacing = undefined
    if (size >= 0) {
      this.segments.set(baseOffset, { size, chain })
      this.gone.delete(baseOffset)
    } else {
      this.segments.delete(baseOffset)
      this.gone.add(baseOffset)
    }
  }

  /** The replacement took place. */
  settle({ old, by: [, , baseOffset, size, chain] }: Replacing): void {
    for (const base of old) if (base !== baseOffset) this.set(base, -1, 0)
    this.set(baseOffset, size, chain)
  }
}

export class KnownSegments {
  readonly #partitions = new Map<string, KnownPartition>()
  readonly #topicIds = new Map<string, string>()

  apply(record: JournalRecord): void {
    if (record.kind === 'topic') this.#topicIds.set(record.topic, record.topicId)
    else if (record.kind === 'topic-deleted') this.dropTopic(this.#topicIds.get(record.topic) ?? '')
    for (const row of record.segments ?? []) this.set(row)
    if (record.kind === 'replacing') this.of(record.by[0], record.by[1]).replacing = record
  }

  set([topicId, partition, baseOffset, size, chain]: SegmentRow): void {
    this.of(topicId, partition).set(baseOffset, size, chain)
  }

  of(topicId: string, partition: number): KnownPartition {
    const key = `${topicId}/${partition}`
    let known = this.#partitions.get(key)
    if (known === undefined) {
      known = new KnownPartition(topicId, partition)
      this.#partitions.set(key, known)
    }
    return known
  }

  dropTopic(topicId: string): void {
    for (const [key, known] of this.#partitions) if (known.topicId === topicId) this.#partitions.delete(key)
  }

  rows(): SegmentRow[] {
    return [...this.#partitions.values()].flatMap(({ topicId, partition, segments }) =>
      [...segments].map(([baseOffset, { size, chain }]): SegmentRow => [topicId, partition, baseOffset, size, chain]),
    )
  }
}
