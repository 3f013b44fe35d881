/** The journal's entries as they are once damaged segments are cut: nobody is farther than what is left. */
import { Offsets } from '../core/offsets.ts'
import type { JournalEntry } from '../core/storage.ts'
import type { CheckedPartition, Witnesses } from './partition-check.ts'

type OffsetsEntry = Extract<JournalEntry, { kind: 'offsets' }>
type Offset = OffsetsEntry['offsets'][number]

export class Reconciled implements Witnesses {
  readonly #entries: readonly JournalEntry[]
  readonly #offsets = new Offsets()
  /** Of the partitions that are cut. */
  readonly #ends = new Map<string, number>()
  readonly #producers = new Map<bigint, number>()
  readonly #damagedTopics = new Set<string>()

  constructor(entries: readonly JournalEntry[]) {
    this.#entries = entries
    for (const entry of entries) {
      if (entry.kind === 'offsets') this.#offsets.commit(entry.groupId, entry.offsets)
      else if (entry.kind === 'topic-deleted') this.#offsets.dropTopic(entry.topic)
      else if (entry.kind === 'pending-offsets') {
        this.#offsets.addPending(BigInt(entry.producerId), entry.epoch, entry.groupId, entry.offsets)
      } else if (entry.kind === 'producer' && entry.ended !== null) {
        this.#offsets.end(BigInt(entry.ended.producerId), entry.ended.commit)
      }
    }
  }

  farthest(topic: string, partition: number): { offset: number; who: string } | undefined {
    let farthest: { offset: number; who: string } | undefined
    const reached = (offset: number, who: string): void => {
      if (offset > (farthest?.offset ?? -1)) farthest = { offset, who }
    }
    // The last fed write may have been cut short.
    const lastFeed = this.#entries.findLast((entry) => entry.kind === 'feed')
    for (const [groupId, offset] of this.#committed(topic, partition)) reached(offset, `the group ${groupId}`)
    for (const entry of this.#entries) {
      if (entry.kind !== 'feed' || entry.topic !== topic || entry === lastFeed) continue
      for (const write of entry.writes) {
        if (write.partition === partition) reached(write.to, `the feed of ${entry.file}`)
      }
    }
    return farthest
  }

  reached({ topic, partition, end, producers, findings }: CheckedPartition): void {
    if (findings.length > 0) {
      this.#ends.set(`${topic}:${partition}`, end)
      this.#damagedTopics.add(topic)
    }
    for (const [producerId, epoch] of producers) {
      if (epoch > (this.#producers.get(producerId) ?? -1)) this.#producers.set(producerId, epoch)
    }
  }

  /** What becomes of groups and feeds, a sentence each. */
  consequences(): string[] {
    const sentences: string[] = []
    for (const [place, end] of this.#ends) {
      const colon = place.lastIndexOf(':')
      const topic = place.slice(0, colon)
      for (const [groupId, offset] of this.#committed(topic, Number(place.slice(colon + 1)))) {
        if (offset > end) sentences.push(`the group ${groupId} goes back from offset ${offset} to ${end} of ${place}`)
      }
    }
    for (const topic of this.#damagedTopics) {
      if (!topic.endsWith('-changelog')) continue
      sentences.push(`state that is restored from ${topic} lacks these changes, and so do results that build on it`)
    }
    for (const entry of this.#entries) {
      if (entry.kind !== 'feed' || !this.#damagedTopics.has(entry.topic)) continue
      const sentence = `lines of ${entry.file} that were fed to ${entry.topic} are not fed again by themselves`
      if (!sentences.includes(sentence)) sentences.push(sentence)
    }
    return sentences
  }

  entries(): JournalEntry[] {
    let nextId = 0n
    for (const producerId of this.#producers.keys()) if (producerId >= nextId) nextId = producerId + 1n
    const entries = this.#entries.map((entry): JournalEntry => {
      switch (entry.kind) {
        case 'offsets':
        case 'pending-offsets':
          return { ...entry, offsets: entry.offsets.map((offset) => this.#within(offset)) }
        case 'feed':
          return { ...entry, writes: [] }
        case 'producer':
          // Epochs that the logs know must not come again.
          return { ...entry, epoch: Math.max(entry.epoch, this.#producers.get(BigInt(entry.producerId)) ?? -1) }
        default:
          return entry
      }
    })
    return nextId > 0n ? [...entries, { kind: 'producer-ids', next: String(nextId) }] : entries
  }

  #within(offset: Offset): Offset {
    const end = this.#ends.get(`${offset.topic}:${offset.partition}`)
    return end === undefined || offset.offset <= end ? offset : { ...offset, offset: end }
  }

  /** The offset of each group that has one. */
  #committed(topic: string, partition: number): Array<readonly [groupId: string, offset: number]> {
    return this.#offsets.groupIds().flatMap((groupId) => {
      const [found] = this.#offsets.committed(groupId, [{ topic, partition }])
      return found === undefined || found.offset < 0 ? [] : [[groupId, found.offset] as const]
    })
  }
}
