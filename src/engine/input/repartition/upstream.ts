/**
 * How far those have come who write to the topics between sub-topologies, told from what the group has committed and from
 * where the topics end. It is looked at in rounds: what has been committed in one round is held against the ends of the
 * round before. Who has done all that there was then *rests*: everything that was known of at that time has come through.
 */
import { type PartitionKey, partitionKey, type TopicPartition } from '../../../base/ids.ts'
import type { Gate } from '../../../time/gates.ts'
import { type HeldBefore, shortName } from '../../commit/held-input.ts'
import type { SourcePlan, TopologyPlan } from '../../../topology/plan.ts'

/** What a commit says of a partition. */
export interface Reached {
  /** -1: nothing is committed. */
  readonly offset: number
  /** Highest event time that was dispatched. */
  readonly maxTimestamp: number
  readonly idle: boolean
  /** Nothing older than this is left of it, where the next record is known and later than that. */
  readonly comesTo?: number | undefined
  /** What is held back of it, as the commit tells it. */
  readonly held?: HeldBefore | undefined
}

/** The sources from which records go over a boundary. */
interface Feeding {
  readonly boundary: number
  readonly toSource: number
  /** Of its topic, as commits tell of it. */
  readonly name: string
  readonly sources: readonly SourcePlan[]
}

export interface Round {
  readonly committed: ReadonlyMap<PartitionKey, Reached>
  /** Looked up behind what is committed. */
  readonly ends: ReadonlyMap<PartitionKey, number>
  readonly now: number
  /** Partitions with records behind an open transaction of somebody else, at those ends. */
  readonly withheld?: ReadonlySet<PartitionKey>
}

/** How far the topic of a boundary has come, once it is read to the end of this round. */
export interface Frontier extends Gate {
  /** Its records and what they make of event time; undefined where that cannot be told. */
  readonly showsMs: number | undefined
}

/** Of some partitions the one that is farthest behind. */
export interface Slowest {
  readonly key: PartitionKey
  /** Nothing older than this is left of it; `-Infinity`: that is not known. */
  readonly reachedMs: number
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

/** Whether those who write to the topic of this source tell how far they have come. */
export function isTold(plan: TopologyPlan, source: SourcePlan): boolean {
  return isAnnounced(plan, source) || isSorted(plan, source)
}

/** Whether windows behind this source, the topic of a boundary on the way to them, go by what has come through to it. */
export function tellsOfInput({ subtopologies, boundaries }: TopologyPlan, source: SourcePlan): boolean {
  const { kind, subtopology, boundary = -1 } = source
  if (kind !== 'boundary' || subtopologies[subtopology]?.closesInQuiet !== true) return false
  return boundaries[boundary]?.sourcesBefore !== undefined
}

function hopsOf(feeding: readonly Feeding[]): number {
  const hops = new Map<number, number>()
  // Each round carries it one topic further.
  for (let round = 0; round < feeding.length; round++) {
    for (const { toSource, sources } of feeding)
      hops.set(toSource, 1 + Math.max(0, ...sources.map(({ index }) => hops.get(index) ?? 0)))
  }
  return Math.max(0, ...hops.values())
}

/** Nothing lies behind what is committed of the partition. */
function isAtEnd(key: PartitionKey, { committed, ends }: Round): boolean {
  const end = ends.get(key) ?? 0
  return end === 0 || (committed.get(key)?.offset ?? -1) >= end
}

export class Upstream {
  readonly #plan: TopologyPlan
  readonly #partitionsOf: (source: SourcePlan) => readonly TopicPartition[]
  readonly #maxTaskIdleMs: number
  #ends: ReadonlyMap<PartitionKey, number> = new Map()
  /** Of those ends. */
  #withheld: ReadonlySet<PartitionKey> = new Set()
  /** Boundary sources all of whose feeders rested in the last round. */
  #drained: ReadonlySet<number> = new Set()
  #round: Round | undefined
  /**
   * When the last rounds were over: as many as it takes for the input of the first level to come through to the last, and
   * one.
   */
  #times: readonly number[] = []
  /** Boundary sources to which all that lay in the input so many rounds ago has come through. */
  #through: ReadonlySet<number> = new Set()
  /**
   * By round, as many as those times, and by boundary: the earliest event time of what was held back before it.
   * What is let go between two rounds is told by the older one for as long as it takes to come through.
   */
  #held: ReadonlyArray<ReadonlyMap<number, number>> = []
  /** Where windows that close in quiet lie behind them: what feeds boundaries. */
  readonly #feeding: ReadonlyArray<Feeding>
  /** How many topics between sub-topologies lie on the longest of these ways. */
  readonly #hops: number
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
    this.#feeding = plan.boundaries.flatMap(({ index, toSource, topic, sourcesBefore }) => {
      if (sourcesBefore === undefined) return []
      const sources = sourcesBefore.map((each) => plan.sources[each] as SourcePlan)
      return { boundary: index, toSource, name: shortName(topic), sources }
    })
    this.#hops = hopsOf(this.#feeding)
  }

  /** Sources of the sub-topology that writes to this one's topic. */
  feeding(source: SourcePlan): SourcePlan[] {
    const { fromSubtopology, fedBy } = this.#plan.boundaries[source.boundary ?? -1] ?? {}
    if (fedBy !== undefined) return fedBy.map((index) => this.#plan.sources[index] as SourcePlan)
    return this.#plan.sources.filter(({ subtopology, kind }) => subtopology === fromSubtopology && kind !== 'global')
  }

  /** Takes in what the group has come to. */
  look(round: Round): void {
    const drained = new Set<number>()
    if (this.#round) {
      this.#ends = this.#round.ends
      this.#withheld = this.#round.withheld ?? new Set()
    }
    const before = this.#drained
    for (const source of this.#plan.sources) {
      if (source.kind !== 'boundary') continue
      if (this.feeding(source).every((feeder) => this.#isDone(feeder, round, before))) drained.add(source.index)
    }
    const own = this.#plan.sources.filter(({ kind }) => kind !== 'global')
    this.isAtRest = own.every((source) => this.#isAtEnd(source, round))
    this.#round = round
    this.#times = [...this.#times, round.now].slice(-this.roundsHeld)
    this.#held = [...this.#held, this.#heldIn(round)].slice(-this.roundsHeld)
    this.#through = this.#throughBy(round)
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
    const isKnown = this.#times.length === this.roundsHeld
    return isKnown && this.#through.has(index) ? this.#times[0] : undefined
  }

  /** What was let go between the oldest of these and the next has come through to the last level. */
  get roundsHeld(): number {
    return this.#hops + 2
  }

  /** Earliest event time of what is held back before the topic of this boundary, by whoever feeds it. */
  heldBefore(boundary: number): number {
    return Math.min(...this.#held.map((held) => held.get(boundary) ?? everything))
  }

  #heldIn({ committed }: Round): Map<number, number> {
    const heldBefore = ({ boundary, name, sources }: Feeding): [number, number] => {
      let least = everything
      for (const { topic, partition } of sources.flatMap((source) => this.#partitionsOf(source)))
        least = Math.min(least, committed.get(partitionKey(topic, partition))?.held?.get(name) ?? everything)
      return [boundary, least]
    }
    return new Map(this.#feeding.map(heldBefore))
  }

  /** Each round carries it one topic further. */
  #throughBy({ committed }: Round): Set<number> {
    const isPast = ({ topic, partition }: TopicPartition): boolean => {
      const key = partitionKey(topic, partition)
      const end = this.#ends.get(key)
      // What an open transaction withheld then lies behind that end, and had come.
      if (end === undefined || this.#withheld.has(key)) return false
      return end === 0 || (committed.get(key)?.offset ?? -1) >= end
    }
    const through = new Set<number>()
    for (const { toSource, sources } of this.#feeding) {
      const isThrough = ({ kind, index }: SourcePlan): boolean => kind !== 'boundary' || this.#through.has(index)
      if (sources.every((each) => isThrough(each) && this.#partitionsOf(each).every(isPast))) through.add(toSource)
    }
    return through
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
        const { maxTimestamp = never } = round.committed.get(key) ?? {}
        upToMs = Math.min(upToMs, maxTimestamp)
        if (!this.#restsLong(feeder, key, round)) knownUpToMs = Math.min(knownUpToMs, maxTimestamp)
        if (this.isIdle(key, round)) idleMs = Math.max(idleMs, maxTimestamp)
        else shows = Math.min(shows, maxTimestamp)
      }
    }
    // Where all are idle, time stays where the last of them took it.
    if (shows === everything) shows = this.#isInCircle(source) ? Math.max(idleMs, this.#besides(source, round)) : idleMs
    const held = heldBackMs ?? 0
    return {
      upToMs: upToMs - held,
      knownUpToMs: knownUpToMs - held,
      showsMs: heldBackMs === undefined ? undefined : shows - held,
    }
  }

  #isInCircle({ boundary = -1 }: SourcePlan): boolean {
    return this.#plan.boundaries[boundary]?.fedBy !== undefined
  }

  /** How far the rest of the sub-topology that reads this topic has come: nobody is to wait there for those who are idle. */
  #besides({ subtopology }: SourcePlan, round: Round): number {
    let least = everything
    for (const source of this.#plan.sources) {
      if (source.subtopology !== subtopology || source.kind === 'global' || this.#isInCircle(source)) continue
      for (const { topic, partition } of this.#partitionsOf(source)) {
        const key = partitionKey(topic, partition)
        if (!this.isIdle(key, round)) least = Math.min(least, round.committed.get(key)?.maxTimestamp ?? never)
      }
    }
    return least === everything ? never : least
  }

  /** Of the partitions of a sub-topology that others have and that have something left to do, the one that is farthest behind. */
  slowestOfOthers(subtopology: number, own: ReadonlySet<PartitionKey>): Slowest | undefined {
    const round = this.#round as Round
    let slowest: Slowest | undefined
    for (const source of this.#plan.sources) {
      // What comes round is read as soon as it is there: its time is that of those who feed it, and says nothing of it.
      if (source.subtopology !== subtopology || source.kind === 'global' || this.#isInCircle(source)) continue
      for (const { topic, partition } of this.#partitionsOf(source)) {
        const key = partitionKey(topic, partition)
        if (own.has(key) || this.#rests(source, key, round, this.#drainedBefore)) continue
        const { maxTimestamp = never, comesTo = maxTimestamp } = round.committed.get(key) ?? {}
        const reachedMs = Math.max(maxTimestamp, comesTo)
        if (slowest === undefined || reachedMs < slowest.reachedMs) slowest = { key, reachedMs }
      }
    }
    return slowest
  }

  /** One that has records again, of which its owner has committed none yet, holds back others: its records would be late. */
  isIdle(key: PartitionKey, round: Round): boolean {
    return round.committed.get(key)?.idle === true && isAtEnd(key, round)
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

  #isAtEnd(source: SourcePlan, round: Round): boolean {
    return this.#partitionsOf(source).every(({ topic, partition }) => isAtEnd(partitionKey(topic, partition), round))
  }

  /** Whether all that lay in the partition a round ago is done, and all that was to come to it had come. */
  #rests(source: SourcePlan, key: PartitionKey, round: Round, drained: ReadonlySet<number>): boolean {
    const end = this.#ends.get(key)
    if (end === undefined || (end > 0 && (round.committed.get(key)?.offset ?? -1) < end)) return false
    if (source.kind !== 'boundary') return true
    return drained.has(source.index) || this.#plan.boundaries[source.boundary ?? -1]?.isCircular === true
  }
}
