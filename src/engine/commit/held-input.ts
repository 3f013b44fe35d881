/**
 * What operators hold back of the input: windows that have not told, records that wait for a partner, timers. Windows that
 * close in quiet do not close over what is held back on the way to them. Lanes say it with each mark of a commit; where
 * sub-topologies exchange records through topics, commits tell it beside the offsets of those who write to these.
 */
import { type PartitionKey, partitionKey, type TopicPartition } from '../../base/ids.ts'
import type { Held } from '../../lanes/protocol.ts'
import { nodesElsewhere, type TopologyPlan } from '../../topology/plan.ts'
import type { FrozenPosition } from '../input/positions.ts'
import type { EngineSettings } from '../settings.ts'
import { digestOf } from './state-marks.ts'

/** By node that closes in quiet: the earliest event time of what is held back above it. */
export type HeldFrom = ReadonlyMap<number, number>

const unknown = Number.NEGATIVE_INFINITY
const nothing = Number.POSITIVE_INFINITY
/** Of the name of a topic between sub-topologies, in a commit. */
const nameLength = 6

const nameOf = (topic: string): string => digestOf(topic).slice(0, nameLength)

/** What is held back of a partition before each topic, as a commit tells it; empty: nothing. */
function textOf(heldBefore: ReadonlyMap<string, number>): string {
  return [...heldBefore].map(([topic, from]) => `${nameOf(topic)}.${Math.floor(from).toString(36)}`).join(';')
}

/** The earliest event time of what is held back of a partition before this topic, by what a commit has told of it. */
export function heldBefore(topic: string, text: string | undefined): number {
  const start = `${nameOf(topic)}.`
  const told = text?.split(';').find((each) => each.startsWith(start))
  return told === undefined ? nothing : Number.parseInt(told.slice(start.length), 36)
}

export class HeldInput {
  readonly #plan: TopologyPlan
  readonly #throughTopics: boolean
  readonly #lanes: number
  readonly #above: ReadonlyMap<number, ReadonlySet<number>>
  /** By lane: what its tasks held back at the last mark. */
  readonly #held = new Map<number, readonly Held[]>()
  /** By partition: what the last commit has told of it. */
  readonly #told = new Map<PartitionKey, string>()

  constructor({ plan, split, lanes }: Pick<EngineSettings, 'plan' | 'split' | 'lanes'>) {
    this.#plan = plan
    this.#throughTopics = split === 'repartition-topics'
    this.#lanes = lanes
    this.#above = new Map((plan.quiet ?? []).map(({ node }) => [node, nodesElsewhere(plan, node)]))
  }

  /** What the tasks of a lane held back when the mark came to each, or where they began. */
  holds(lane: number, held: readonly Held[] = []): void {
    this.#held.set(lane, held)
  }

  /** The partition is read from where a commit has left it, with what was held back then. */
  assigned({ topic, partition }: TopicPartition, held = ''): void {
    this.#told.set(partitionKey(topic, partition), held)
  }

  /**
   * With what is held back of what came from the partition, where the commit has to tell that to others. Only to be asked
   * once all lanes have acknowledged the mark.
   */
  readonly withHeld = (position: FrozenPosition): FrozenPosition => {
    if (this.#above.size === 0 || !this.#throughTopics) return position
    const { topic, partition, subtopology } = position
    const key = partitionKey(topic, partition)
    const before = this.#told.get(key) ?? ''
    const from = new Map<string, number>()
    for (const { fromSubtopology, topic: between, nodesBefore } of this.#plan.boundaries) {
      if (fromSubtopology !== subtopology || nodesBefore === undefined) continue
      const least = this.#least((held) => held.partition === partition && nodesBefore.includes(held.node))
      if (least !== nothing) from.set(between, least)
    }
    const held = textOf(from)
    this.#told.set(key, held)
    return { ...position, held, isTold: position.isTold || held !== before }
  }

  /** By what the lanes have said last. */
  above(node: number): number {
    const above = this.#above.get(node)
    if (above === undefined || above.size === 0) return nothing
    return this.#held.size < this.#lanes ? unknown : this.#least((held) => above.has(held.node))
  }

  #least(counts: (held: Held) => boolean): number {
    let least = nothing
    for (const ofLane of this.#held.values())
      for (const held of ofLane) if (held.from < least && counts(held)) least = held.from
    return least
  }
}
