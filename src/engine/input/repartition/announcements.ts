/**
 * How far event time has come in a topic between sub-topologies. What its records show is not enough: several tasks of
 * several processes write to one partition, and the records of one that is behind would come late although they are in
 * time. So each partition is told by those who feed it, and plain records stay what other readers find in the topic.
 *
 * What is told needs no channel of its own. With every commit a process leaves the event time of each partition that it
 * reads in the metadata of its offset, in the same transaction as the records that came of it. Whoever has read a
 * repartition topic up to the end that it had after those offsets were looked up has all of these records, and knows how
 * far those who write have come (`upstream.ts`).
 */
import { type PartitionKey, partitionKey, type TopicPartition } from '../../../base/ids.ts'
import type { Clock } from '../../../base/clock.ts'
import type { Timers } from '../../../base/timers.ts'
import { BrokerError, type BrokerPort } from '../../../broker/port.ts'
import { decodeHeld } from '../../commit/held-input.ts'
import type { CameThrough } from '../../commit/known-input.ts'
import { decodeTag } from '../../commit/tag.ts'
import type { Gate } from '../../../time/gates.ts'
import type { SourcePlan, TopologyPlan } from '../../../topology/plan.ts'
import type { ResolvedTopics } from '../../group/topics.ts'
import { Told } from './told.ts'
import {
  type Frontier,
  isAnnounced,
  isSorted,
  isTold,
  type Reached,
  type Slowest,
  tellsOfInput,
  Upstream,
} from './upstream.ts'

export interface AnnouncementsOptions {
  readonly broker: BrokerPort
  readonly clock: Clock
  readonly timers: Timers
  readonly groupId: string
  readonly plan: TopologyPlan
  readonly everyMs: number
  readonly maxTaskIdleMs: number
  /** Sub-topologies of which it is of interest how far the others of the group are. */
  readonly writers: readonly number[]
}

/** A partition of this process. */
export interface OwnPartition extends TopicPartition {
  readonly source: number
  readonly subtopology: number
}

export interface AnnouncementsHost {
  /** All partitions of this process. */
  partitions(): readonly OwnPartition[]
  topics(): ResolvedTopics
  /** Up to where the partition was fetched. */
  position(partition: TopicPartition): number
  /** Everything below this offset is at hand: it was dispatched, or has its place among what waits. */
  reached(partition: TopicPartition, offset: number): boolean
  /** The partition of the input ends here or behind. */
  endsAtLeast(partition: TopicPartition, offset: number): void
  /** Those who write to the partition have come so far in event time. */
  shows(partition: TopicPartition, epochMs: number): void
  /** The heads of the partition's sub-topology may go so far; `known`: what of each partition was read when this was known. */
  cameTo(partition: TopicPartition, gate: Gate, known: ReadonlyMap<PartitionKey, number>): void
  /** Of the others that have partitions of the sub-topology, the slowest; undefined: none has anything left to do. */
  othersAt(subtopology: number, slowest: Slowest | undefined): void
  /** What has come through of the input is at hand, as far as it is for this sub-topology. */
  knows(subtopology: number, through: CameThrough): void
  failed(error: unknown): void
}

/** How far a round has found those who write to the partitions of a sub-topology. */
interface Progress {
  readonly partitions: ReadonlyArray<{ readonly at: OwnPartition; readonly frontier: Frontier }>
  readonly known: ReadonlyMap<PartitionKey, number>
}

const keysOf = (partitions: readonly TopicPartition[]): Set<PartitionKey> =>
  new Set(partitions.map(({ topic, partition }) => partitionKey(topic, partition)))

/** Soon enough for what waits, and not so soon that the broker does nothing else. */
const hurryMs = 5

export class Announcements {
  readonly #o: AnnouncementsOptions
  readonly #host: AnnouncementsHost
  readonly #upstream: Upstream
  readonly #closesInQuiet: boolean
  /** Of topics whose records are sorted, which are at hand once they are fetched. */
  readonly #progress = new Told<OwnPartition, Progress>((_, progress) => this.#comes(progress))
  /** Of others, which are once they are dispatched: what is told of the sorted ones beside them may not wait for that. */
  readonly #unsorted = new Told<OwnPartition, Progress>((_, progress) => this.#comes(progress))
  readonly #through: Told<OwnPartition, CameThrough>
  /** What of each partition was read before the round before. */
  #known: ReadonlyMap<PartitionKey, number> = new Map()
  #asking: Promise<void> | undefined
  #cancel: (() => void) | undefined
  #hurried = 0
  /** How often partitions came or went. */
  #reassigned = 0
  #closed = false

  constructor(options: AnnouncementsOptions, host: AnnouncementsHost) {
    this.#o = options
    this.#host = host
    this.#through = new Told((subtopology, through) => host.knows(subtopology, through))
    this.#closesInQuiet = options.plan.subtopologies.some(({ closesInQuiet }) => closesInQuiet === true)
    this.#upstream = new Upstream(options.plan, (source) => this.#partitionsOf(source), options.maxTaskIdleMs)
  }

  start(): void {
    this.#later(Math.min(hurryMs, this.#o.everyMs))
  }

  close(): void {
    this.#closed = true
    this.#cancel?.()
  }

  /** Something waits for the next two rounds: what is known in the first is let go by the second. */
  hurry(): void {
    this.#hurried = 2
    if (!this.#closed && this.#asking === undefined && this.#cancel !== undefined) this.#later(hurryMs)
  }

  /**
   * Partitions came or went. What was told before does not hold for one that has come, whose records are not at hand yet;
   * and one that has gone is not read any further, so that what was told of it would be waited for without end.
   */
  reassigned(): void {
    this.#reassigned++
    this.#progress.clear()
    this.#unsorted.clear()
    this.#through.clear()
    this.hurry()
  }

  #later(afterMs: number): void {
    this.#cancel?.()
    this.#cancel = this.#o.timers.after(afterMs, () => {
      this.#cancel = undefined
      if (!this.#closed) void this.#round()
    })
  }

  async #round(): Promise<void> {
    try {
      if (this.#isOfInterest) await this.#askOnce()
    } catch (error) {
      if (this.#closed) return
      // Asked again soon; a broker that stays away is told of by the fetches.
      if (!(error instanceof BrokerError)) {
        this.#host.failed(error)
        return
      }
    }
    if (this.#closed) return
    this.#hurried = Math.max(0, this.#hurried - 1)
    this.#later(this.#hurried > 0 ? Math.min(hurryMs, this.#o.everyMs) : this.#o.everyMs)
  }

  get #isOfInterest(): boolean {
    const own = this.#host.partitions()
    const { plan, writers } = this.#o
    const isTelling = ({ source }: OwnPartition): boolean =>
      isTold(plan, this.#source(source)) || tellsOfInput(plan, this.#source(source))
    return own.some((each) => writers.includes(each.subtopology) || isTelling(each))
  }

  #askOnce(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  /** Lets in force what was read up to; called when records have been dispatched or a fetch brought something. */
  settle(): void {
    const isReached = (at: OwnPartition, end: number): boolean => this.#host.reached(at, end)
    this.#through.settle(isReached)
    this.#progress.settle(isReached)
    this.#unsorted.settle(isReached)
  }

  /** Whether the group has done all that its input held when this was asked, in whosever hands, or in nobody's. */
  async isDrained(): Promise<boolean> {
    // One round may have begun before.
    await this.#askOnce()
    await this.#askOnce()
    return this.#upstream.isAtRest
  }

  #comes({ partitions, known }: Progress): void {
    let upToMs = Number.POSITIVE_INFINITY
    let knownUpToMs = Number.POSITIVE_INFINITY
    let sorted: OwnPartition | undefined
    for (const { at, frontier } of partitions) {
      if (frontier.showsMs !== undefined && frontier.showsMs > Number.NEGATIVE_INFINITY)
        this.#host.shows(at, frontier.showsMs)
      if (!isSorted(this.#o.plan, this.#o.plan.sources[at.source])) continue
      sorted = at
      upToMs = Math.min(upToMs, frontier.upToMs)
      knownUpToMs = Math.min(knownUpToMs, frontier.knownUpToMs)
    }
    if (sorted) this.#host.cameTo(sorted, { upToMs, knownUpToMs }, known)
  }

  #source(index: number): SourcePlan {
    return this.#o.plan.sources[index] as SourcePlan
  }

  /** Partitions of this process whose sources are told of, by sub-topology. */
  #own(
    isTold: (plan: TopologyPlan, source: SourcePlan) => boolean,
    own = this.#host.partitions(),
  ): Map<number, OwnPartition[]> {
    const told = own.filter(({ source }) => isTold(this.#o.plan, this.#source(source)))
    return Map.groupBy(told, ({ subtopology }) => subtopology)
  }

  async #ask(): Promise<void> {
    const own = this.#host.partitions()
    const reassigned = this.#reassigned
    const { broker, groupId, clock, plan } = this.#o
    const known = new Map(own.map((tp) => [partitionKey(tp.topic, tp.partition), this.#host.position(tp)]))
    const sources = plan.sources.filter(({ kind }) => kind !== 'global')
    const through = sources.filter(({ kind }) => kind === 'boundary').flatMap((each) => this.#partitionsOf(each))
    const first = sources.filter(({ kind }) => kind !== 'boundary').flatMap((each) => this.#partitionsOf(each))
    const asked = await broker.committedOffsets(groupId, [...through, ...first], false)
    // First what is committed, then how far the topics go: not the other way round. A commit's records may not be
    // readable yet while its offsets are, so it is the end of all that counts.
    const [ends, readable, all] = await Promise.all([
      through.length > 0 ? broker.listOffsets(through, 'latest') : [],
      first.length > 0 ? broker.listOffsets(first, 'stable') : [],
      first.length > 0 && this.#closesInQuiet ? broker.listOffsets(first, 'latest') : [],
    ])
    if (this.#closed) return
    const endOf = new Map([...ends, ...readable].map((at) => [partitionKey(at.topic, at.partition), at.offset]))
    const committed = new Map(
      asked.map(({ topic, partition, offset, metadata }): [PartitionKey, Reached] => {
        const { maxTimestamp = Number.NEGATIVE_INFINITY, comesTo, idle = false, held } = decodeTag(metadata) ?? {}
        return [partitionKey(topic, partition), { offset, maxTimestamp, comesTo, idle, held: decodeHeld(held) }]
      }),
    )
    // What is behind a topic was in the input before: tables beside it are read so far before anything goes for what is told.
    for (const { topic, partition, offset } of readable) this.#host.endsAtLeast({ topic, partition }, offset)
    const withheld = all.filter((at) => at.offset > (endOf.get(partitionKey(at.topic, at.partition)) ?? 0))
    this.#upstream.look({ committed, ends: endOf, now: clock.monotonic(), withheld: keysOf(withheld) })
    if (reassigned === this.#reassigned) {
      this.#tell(own, endOf)
      this.#tellOfOthers(keysOf(own))
    }
    this.#known = known
    this.settle()
  }

  #tell(own: readonly OwnPartition[], ends: ReadonlyMap<PartitionKey, number>): void {
    const endOf = (at: OwnPartition): number =>
      ends.get(partitionKey(at.topic, at.partition)) ?? Number.POSITIVE_INFINITY
    const endsOf = (partitions: readonly OwnPartition[]) => partitions.map((at) => ({ at, end: endOf(at) }))
    const frontiers = new Map<number, Frontier>()
    for (const [into, told] of [
      [this.#progress, this.#own(isSorted, own)],
      [this.#unsorted, this.#own((plan, source) => isAnnounced(plan, source) && !isSorted(plan, source), own)],
    ] as const) {
      into.keep(told)
      for (const [subtopology, partitions] of told) {
        for (const { source } of partitions)
          if (!frontiers.has(source)) frontiers.set(source, this.#upstream.frontierOf(this.#source(source)))
        const progress = partitions.map((at) => ({ at, frontier: frontiers.get(at.source) as Frontier }))
        into.add(subtopology, endsOf(partitions), { partitions: progress, known: this.#known })
      }
    }
    const quiet = this.#own(tellsOfInput, own)
    this.#through.keep(quiet)
    for (const [subtopology, partitions] of quiet) {
      const through = this.#cameThrough(subtopology, partitions)
      if (through !== undefined) this.#through.add(subtopology, endsOf(partitions), through)
    }
  }

  #tellOfOthers(own: ReadonlySet<PartitionKey>): void {
    for (const subtopology of this.#o.writers)
      this.#host.othersAt(subtopology, this.#upstream.slowestOfOthers(subtopology, own))
  }

  /** Undefined: what lay in the input is not in the topics of the sub-topology yet. */
  #cameThrough(subtopology: number, partitions: readonly OwnPartition[]): CameThrough | undefined {
    const sources = new Set(partitions.map(({ source }) => source))
    const known = [...sources].map((source) => this.#upstream.knownAt(this.#source(source)))
    if (!known.every((at) => at !== undefined)) return undefined
    const held = new Map<number, number>()
    for (const { node, subtopology: of, boundaries } of this.#o.plan.quiet ?? [])
      if (of === subtopology) held.set(node, Math.min(...boundaries.map((each) => this.#upstream.heldBefore(each))))
    return { at: Math.min(...known), held }
  }

  #partitionsOf({ index }: SourcePlan): TopicPartition[] {
    const { bySource, topics } = this.#host.topics()
    return (bySource[index] ?? []).flatMap((topic) =>
      Array.from({ length: topics.get(topic)?.partitions ?? 0 }, (_, partition) => ({ topic, partition })),
    )
  }
}
