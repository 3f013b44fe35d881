/**
 * How far those have come who write to the topics between sub-topologies, told from what the group has committed and from
 * where the topics end. It is looked at in rounds: what has been committed in one round is held against the ends of the
 * round before. Who has done all that there was then *rests*: everything that was known of at that time has come through.
 */
import { type PartitionKey, partitionKey, type TopicPartition } from '../../../base/ids.ts'
import type { Gate } from '../../../time/gates.ts'
import { heldBefore } from '../../commit/held-input.ts'
import type { BoundaryPlan, SourcePlan, TopologyPlan } from '../../../topology/plan.ts'

/** What a commit says of a partition. */
export interface Reached {
  /** -1: nothing is committed. */
  readonly offset: number
  /** Highest event time that was dispatched. */
  readonly maxTimestamp: number
  readonly idle: boolean
  /** What is held back of it, as the commit tells it. */
  readonly held?: string | undefined
}

export interface Round {
  readonly committed: ReadonlyMap<PartitionKey, Reached>
  /** Looked up behind what is committed. */
  readonly ends: ReadonlyMap<PartitionKey, number>
  readonly now: number
  /** Records lie behind an open transaction of somebody else. */
  readonly isWithheld?: boolean
}

/** How far the topic of a boundary has come, once it is read to the end of this round. */
export interface Frontier extends Gate {
  /** Its records and what they make of event time; undefined where that cannot be told. */
  readonly showsMs: number | undefined
}

const never = Number.NEGATIVE_INFINITY
const everything = Number.POSITIVE_INFINITY

/** Whether the watermark of this source is announced by who feeds it, and not read off its records. */
export function isAnnounced(plan: TopologyPlan, source: SourcePlan | undefined): boolean {
  return source?.kind === 'boundary' && plan.boundaries[source.boundary ?? -1]?.heldBackMs !== undefined
}

/** Whether records of this source, the topic of a boundary, are taken in the order of event time. */
export function isSorted(plan: TopologyPlan, source: SourcePlan | undefined): boolean {
  if (source?.kind !== 'boundary' || plan.subtopologies[source.subtopology]?.order === 'arrival') return false
  return plan.boundaries[source.boundary ?? -1]?.isCircular === false
}

export class Upstream {
  readonly #plan: TopologyPlan
  readonly #partitionsOf: (source: SourcePlan) => readonly TopicPartition[]
  readonly #maxTaskIdleMs: number
  #ends: ReadonlyMap<PartitionKey, number> = new Map()
  /** Boundary sources all of whose feeders rested in the last round. */
  #drained: ReadonlySet<number> = new Set()
  #round: Round | undefined
  /**
   * When the last rounds were over: as many as it takes for the input of the first level to come through to the last, and
   * one. Undefined where not all that had come by then could be read.
   */
  #times: ReadonlyArray<number | undefined> = []
  /** Since when partitions have rested where they are. */
  readonly #resting = new Map<PartitionKey, { readonly offset: number; readonly at: number }>()

  /** `maxTaskIdleMs`: those that rest are waited for so long all the same. */
  constructor(
    plan: TopologyPlan,
    partitionsOf: (source: SourcePlan) => readonly TopicPartition[],
    maxTaskIdleMs: number,
  ) {
    this.#plan = plan
    this.#partitionsOf = partitionsOf
    this.#maxTaskIdleMs = maxTaskIdleMs
  }

  /** Sources of the sub-topology that writes to this one's topic. */
  feeding(source: SourcePlan): SourcePlan[] {
    const from = this.#plan.boundaries[source.boundary ?? -1]?.fromSubtopology
    return this.#plan.sources.filter(({ subtopology, kind }) => subtopology === from && kind !== 'global')
  }

  /** Takes in what the group has come to. */
  look(round: Round): void {
    const drained = new Set<number>()
    if (this.#round) this.#ends = this.#round.ends
    const before = this.#drained
    for (const source of this.#plan.sources) {
      if (source.kind !== 'boundary') continue
      if (this.feeding(source).every((feeder) => this.#isDone(feeder, round, before))) drained.add(source.index)
    }
    const own = this.#plan.sources.filter(({ kind }) => kind !== 'global')
    this.isAtRest = own.every((source) => this.#isAtEnd(source, round))
    this.#round = round
    this.#times = [...this.#times, round.isWithheld === true ? undefined : round.now].slice(-this.#plan.levels - 1)
    this.#drainedBefore = before
    this.#drained = drained
  }

  #drainedBefore: ReadonlySet<number> = new Set()
  /**
   * Nothing lies behind what is committed, in topics between sub-topologies either: ends are looked up behind that, so what came
   * of it is among what was looked at.
   */
  isAtRest = false

  /** All that lay in the input at this moment has come through to the topic of this boundary; undefined where that is not known. */
  knownAt({ index }: SourcePlan): number | undefined {
    const isKnown = this.#times.length > this.#plan.levels && !this.#times.includes(undefined)
    return isKnown && this.#drained.has(index) ? this.#times[0] : undefined
  }

  /** Earliest event time of what is held back before the topic of this boundary, by whoever feeds it. */
  heldBefore(index: number): number {
    const { fromSubtopology, topic: between } = this.#plan.boundaries[index] as BoundaryPlan
    let least = everything
    for (const source of this.#plan.sources) {
      if (source.subtopology !== fromSubtopology || source.kind === 'global') continue
      for (const { topic, partition } of this.#partitionsOf(source)) {
        const told = this.#round?.committed.get(partitionKey(topic, partition))?.held
        least = Math.min(least, heldBefore(between, told))
      }
    }
    return least
  }

  frontierOf(source: SourcePlan): Frontier {
    const round = this.#round as Round
    const heldBackMs = this.#plan.boundaries[source.boundary ?? -1]?.heldBackMs
    let upToMs = everything
    let knownUpToMs = everything
    let shows = everything
    let idleMs = never
    for (const feeder of this.feeding(source)) {
      for (const tp of this.#partitionsOf(feeder)) {
        const key = partitionKey(tp.topic, tp.partition)
        const { maxTimestamp = never, idle = false } = round.committed.get(key) ?? {}
        upToMs = Math.min(upToMs, maxTimestamp)
        if (!this.#restsLong(feeder, key, round)) knownUpToMs = Math.min(knownUpToMs, maxTimestamp)
        if (idle) idleMs = Math.max(idleMs, maxTimestamp)
        else shows = Math.min(shows, maxTimestamp)
      }
    }
    // Where all are idle, time stays where the last of them took it.
    if (shows === everything) shows = idleMs
    const held = heldBackMs ?? 0
    return {
      upToMs: upToMs - held,
      knownUpToMs: knownUpToMs - held,
      showsMs: heldBackMs === undefined ? undefined : shows - held,
    }
  }

  #restsLong(source: SourcePlan, key: PartitionKey, round: Round): boolean {
    if (!this.#rests(source, key, round, this.#drainedBefore)) {
      this.#resting.delete(key)
      return false
    }
    if (this.#maxTaskIdleMs <= 0) return true
    const { offset } = round.committed.get(key) ?? { offset: -1 }
    let resting = this.#resting.get(key)
    if (resting?.offset !== offset) {
      resting = { offset, at: round.now }
      this.#resting.set(key, resting)
    }
    return round.now - resting.at >= this.#maxTaskIdleMs
  }

  #isDone(source: SourcePlan, round: Round, drained: ReadonlySet<number>): boolean {
    const keys = this.#partitionsOf(source).map(({ topic, partition }) => partitionKey(topic, partition))
    return keys.every((key) => this.#rests(source, key, round, drained))
  }

  #isAtEnd(source: SourcePlan, { committed, ends }: Round): boolean {
    return this.#partitionsOf(source).every(({ topic, partition }) => {
      const key = partitionKey(topic, partition)
      const end = ends.get(key) ?? 0
      return end === 0 || (committed.get(key)?.offset ?? -1) >= end
    })
  }

  /** Whether all that lay in the partition a round ago is done, and all that was to come to it had come. */
  #rests(source: SourcePlan, key: PartitionKey, round: Round, drained: ReadonlySet<number>): boolean {
    const end = this.#ends.get(key)
    if (end === undefined || (end > 0 && (round.committed.get(key)?.offset ?? -1) < end)) return false
    if (source.kind !== 'boundary') return true
    return drained.has(source.index) || this.#plan.boundaries[source.boundary ?? -1]?.isCircular === true
  }
}
