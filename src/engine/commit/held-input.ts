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

/** By short name of a topic between sub-topologies: the earliest event time of what is held back before it. */
export type HeldBefore = ReadonlyMap<string, number>

const unknown = Number.NEGATIVE_INFINITY
const nothing = Number.POSITIVE_INFINITY

/** Of a topic between sub-topologies, in a commit. */
export const shortName = (topic: string): string => digestOf(topic).slice(0, 6)

/** The same is held back: the same text. Empty: nothing is. */
function textOf(heldBefore: HeldBefore | undefined): string {
  const told = [...(heldBefore ?? [])].map(([name, from]) => `${name}.${Math.floor(from).toString(36)}`)
  return told.sort().join(';')
}

/** What a commit tells of a partition; undefined: nothing is held back. */
export function decodeHeld(text: string | undefined): HeldBefore | undefined {
  if (text === undefined || text === '') return undefined
  const entries = text.split(';').map((each): [string, number] => {
    const dot = each.indexOf('.')
    return [each.slice(0, dot), Number.parseInt(each.slice(dot + 1), 36)]
  })
  return new Map(entries.filter(([, from]) => !Number.isNaN(from)))
}

export class HeldInput {
  readonly #throughTopics: boolean
  readonly #lanes: number
  readonly #above: ReadonlyMap<number, ReadonlySet<number>>
  /** By node: the sub-topology, and the topics to which its records go on the way to such windows, by short name. */
  readonly #ways = new Map<number, { readonly subtopology: number; readonly topics: string[] }>()
  /** By lane: what its tasks held back at the last mark. */
  readonly #held = new Map<number, readonly Held[]>()
  /** By partition: what the last commit has told of it. */
  readonly #told = new Map<PartitionKey, string>()

  constructor({ plan, split, lanes }: Pick<EngineSettings, 'plan' | 'split' | 'lanes'>) {
    this.#throughTopics = split === 'repartition-topics'
    this.#lanes = lanes
    this.#above = new Map((plan.quiet ?? []).map(({ node }) => [node, nodesElsewhere(plan, node)]))
    this.#findWays(plan)
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
   * With what is held back of what came from the partitions, where the commit has to tell that to others. Only to be asked
   * once all lanes have acknowledged the mark.
   */
  withHeld(positions: readonly FrozenPosition[]): readonly FrozenPosition[] {
    if (this.#ways.size === 0 || !this.#throughTopics) return positions
    const byTask = this.#byTask()
    return positions.map((position) => {
      const { topic, partition, subtopology } = position
      const key = partitionKey(topic, partition)
      const before = this.#told.get(key) ?? ''
      const held = textOf(byTask.get(taskKey(subtopology, partition)))
      this.#told.set(key, held)
      return { ...position, held, isTold: position.isTold || held !== before }
    })
  }

  /** By what the lanes have said last; by node that closes in quiet. */
  above(): HeldFrom {
    const least = new Map([...this.#above].map(([node, above]) => [node, above.size === 0 ? nothing : unknown]))
    if (this.#held.size < this.#lanes) return least
    const byNode = new Map<number, number>()
    for (const { node, from } of this.#all()) if (from < (byNode.get(node) ?? nothing)) byNode.set(node, from)
    for (const [node, above] of this.#above)
      least.set(node, Math.min(...[...above].map((each) => byNode.get(each) ?? nothing)))
    return least
  }

  #findWays({ boundaries }: TopologyPlan): void {
    for (const { fromSubtopology: subtopology, topic, nodesBefore = [] } of boundaries) {
      for (const node of nodesBefore) {
        const way = this.#ways.get(node) ?? { subtopology, topics: [] }
        way.topics.push(shortName(topic))
        this.#ways.set(node, way)
      }
    }
  }

  #byTask(): Map<string, Map<string, number>> {
    const byTask = new Map<string, Map<string, number>>()
    for (const { node, partition, from } of this.#all()) {
      const way = this.#ways.get(node)
      if (way === undefined) continue
      const key = taskKey(way.subtopology, partition)
      const before = byTask.get(key) ?? new Map<string, number>()
      byTask.set(key, before)
      for (const topic of way.topics) if (from < (before.get(topic) ?? nothing)) before.set(topic, from)
    }
    return byTask
  }

  *#all(): Iterable<Held> {
    for (const held of this.#held.values()) yield* held
  }
}

const taskKey = (subtopology: number, partition: number): string => `${subtopology}_${partition}`
