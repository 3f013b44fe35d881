/**
 * How far event time has come in a topic between sub-topologies. What its records show is not enough: several tasks of
 * several processes write to one partition, and the records of one that is behind would come late although they are in
 * time. So each partition is told by those who feed it, and plain records stay what other readers find in the topic.
 *
 * What is told needs no channel of its own. With every commit a process leaves the event time of each partition that it
 * reads in the metadata of its offset, in the same transaction as the records that came of it. Whoever has read a
 * repartition topic up to the end that it had after those offsets were looked up has all of these records, and can take
 * the least of these times for its own.
 */
import { type PartitionKey, partitionKey, type TopicPartition } from '../base/ids.ts'
import type { Timers } from '../base/timers.ts'
import { BrokerError, type BrokerPort, type CommittedOffset } from '../broker/port.ts'
import { decodeTag } from '../commit/tag.ts'
import type { SourcePlan, TopologyPlan } from '../topology/plan.ts'
import type { ResolvedTopics } from './topics.ts'

export interface AnnouncementsOptions {
  readonly broker: BrokerPort
  readonly timers: Timers
  readonly groupId: string
  readonly plan: TopologyPlan
  readonly everyMs: number
  /** Out-of-orderness of a source's partitions, by which their watermark lies behind their highest event time. */
  readonly disorderMs: (source: SourcePlan) => number
}

export interface AnnouncementsHost {
  /** Partitions of this process that are fed by announced boundaries. */
  partitions(): ReadonlyArray<TopicPartition & { readonly source: number }>
  topics(): ResolvedTopics
  /** Everything below this offset of the partition was dispatched. */
  reached(partition: TopicPartition, offset: number): boolean
  announce(partition: TopicPartition, watermark: number): void
  failed(error: unknown): void
}

interface Told {
  readonly end: number
  readonly watermark: number
}

/** Whether the watermark of this source is announced by who feeds it, and not read off its records. */
export function isAnnounced(plan: TopologyPlan, source: SourcePlan | undefined): boolean {
  return source?.kind === 'boundary' && plan.boundaries[source.boundary ?? -1]?.prompt === true
}

export class Announcements {
  readonly #o: AnnouncementsOptions
  readonly #host: AnnouncementsHost
  /** The oldest that is not reached yet, and the newest. */
  readonly #waiting = new Map<PartitionKey, Told[]>()
  #closed = false

  constructor(options: AnnouncementsOptions, host: AnnouncementsHost) {
    this.#o = options
    this.#host = host
  }

  start(): void {
    this.#o.timers.after(this.#o.everyMs, () => {
      if (this.#closed) return
      this.#ask().then(
        () => this.start(),
        (error: unknown) => {
          if (this.#closed) return
          // Asked again soon; a broker that stays away is told of by the fetches.
          if (error instanceof BrokerError) this.start()
          else this.#host.failed(error)
        },
      )
    })
  }

  close(): void {
    this.#closed = true
  }

  /** Lets in force what was read up to; called when records have been dispatched or a fetch brought nothing. */
  settle(): void {
    for (const [key, told] of this.#waiting) {
      const [topic, partition] = splitKey(key)
      const reached = told.filter(({ end }) => this.#host.reached({ topic, partition }, end))
      for (const { watermark } of reached) this.#host.announce({ topic, partition }, watermark)
      const left = told.filter((each) => !reached.includes(each))
      if (left.length > 0) this.#waiting.set(key, left)
      else this.#waiting.delete(key)
    }
  }

  async #ask(): Promise<void> {
    const mine = this.#host.partitions()
    if (mine.length === 0) return
    const { broker, groupId } = this.#o
    const feeding = new Map<number, readonly SourcePlan[]>(
      [...new Set(mine.map(({ source }) => source))].map((source) => [source, this.#feeding(source)]),
    )
    const upstream = [...new Set([...feeding.values()].flat())]
    const partitions = upstream.flatMap((source) => this.#partitionsOf(source))
    // First what is committed, then how far the topics go: not the other way round.
    const committed = await broker.committedOffsets(groupId, partitions, false)
    const ends = await broker.listOffsets(
      mine.map(({ topic, partition }) => ({ topic, partition })),
      'latest',
    )
    if (this.#closed) return
    const byKey = new Map(committed.map((each) => [partitionKey(each.topic, each.partition), each]))
    const endOf = new Map(ends.map((each) => [partitionKey(each.topic, each.partition), each.offset]))
    for (const [source, sources] of feeding) {
      const watermark = this.#least(sources, byKey)
      if (!Number.isFinite(watermark)) continue
      for (const { topic, partition } of mine.filter((each) => each.source === source)) {
        const end = endOf.get(partitionKey(topic, partition))
        if (end !== undefined) this.#told(partitionKey(topic, partition), { end, watermark })
      }
    }
    this.settle()
  }

  #told(key: PartitionKey, told: Told): void {
    const [oldest] = this.#waiting.get(key) ?? []
    this.#waiting.set(key, oldest === undefined ? [told] : [oldest, told])
  }

  /** Sources of the sub-topology that writes to this one's topic. */
  #feeding(source: number): SourcePlan[] {
    const { plan } = this.#o
    const from = plan.boundaries[plan.sources[source]?.boundary ?? -1]?.fromSubtopology
    return plan.sources.filter(({ subtopology, kind }) => subtopology === from && kind !== 'global')
  }

  #partitionsOf({ index }: SourcePlan): TopicPartition[] {
    const { bySource, topics } = this.#host.topics()
    return (bySource[index] ?? []).flatMap((topic) =>
      Array.from({ length: topics.get(topic)?.partitions ?? 0 }, (_, partition) => ({ topic, partition })),
    )
  }

  /** The least of what those who feed have come to; idle ones do not count, and one that never said holds all. */
  #least(sources: readonly SourcePlan[], committed: ReadonlyMap<PartitionKey, CommittedOffset>): number {
    let least = Number.POSITIVE_INFINITY
    for (const source of sources) {
      const disorder = isAnnounced(this.#o.plan, source) ? 0 : this.#o.disorderMs(source)
      for (const { topic, partition } of this.#partitionsOf(source)) {
        const tag = decodeTag(committed.get(partitionKey(topic, partition))?.metadata ?? '')
        if (tag?.idle) continue
        least = Math.min(least, (tag?.maxTimestamp ?? Number.NEGATIVE_INFINITY) - disorder)
      }
    }
    return least
  }
}

function splitKey(key: PartitionKey): [topic: string, partition: number] {
  const colon = key.lastIndexOf(':')
  return [key.slice(0, colon), Number(key.slice(colon + 1))]
}
