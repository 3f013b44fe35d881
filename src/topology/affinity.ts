/**
 * Which task a record belongs to, and which lane runs that task.
 *
 * A sub-topology with state has one task per changelog partition. The key's hash chooses the partition, and the
 * partition chooses the lane. So the number of lanes may change between runs while the state stays where it is. A
 * sub-topology without state has one task per lane and uses every lane, however few partitions its topics have. One that
 * writes records under other keys than they came with takes each partition in one of them (`keys/by-partition.ts`). Where
 * sub-topologies exchange records through broker topics, several processes share the partitions. Then a record belongs
 * to the task of its own partition, as in Kafka Streams.
 */
import type { SubtopologyPlan, TopologyPlan } from './plan.ts'
import type { SplitMode } from './split.ts'

export type { SplitMode }

export interface TaskRef {
  readonly subtopology: number
  readonly partition: number
}

export class Affinity {
  readonly lanes: number
  readonly split: SplitMode
  /** How many tasks each sub-topology has. */
  readonly #tasks: readonly number[]
  readonly #stateful: readonly boolean[]
  readonly #byPartition: readonly boolean[]

  constructor({ lanes, split, tasks, stateful, byPartition = [] }: AffinityPlan) {
    this.lanes = lanes
    this.split = split
    this.#tasks = tasks
    this.#stateful = stateful
    this.#byPartition = byPartition
  }

  /**
   * The task of a record of this sub-topology: by its key's hash, or by its partition, -1 where none brought it. Where
   * sub-topologies exchange records through topics that partition is the task.
   */
  task(subtopology: number, slot: number, sourcePartition: number): number {
    if (this.split === 'repartition-topics') return sourcePartition
    const by = sourcePartition >= 0 && this.#byPartition[subtopology] === true ? sourcePartition : slot
    return by % (this.#tasks[subtopology] as number)
  }

  lane(_subtopology: number, task: number): number {
    return task % this.lanes
  }

  tasks(subtopology: number): number {
    return this.#tasks[subtopology] as number
  }

  stateful(subtopology: number): boolean {
    return this.#stateful[subtopology] as boolean
  }

  toJSON(): AffinityPlan {
    const { lanes, split } = this
    return { lanes, split, tasks: this.#tasks, stateful: this.#stateful, byPartition: this.#byPartition }
  }

  static from(plan: AffinityPlan): Affinity {
    return new Affinity(plan)
  }
}

/** `Affinity` as plain data. */
export interface AffinityPlan {
  readonly lanes: number
  readonly split: SplitMode
  readonly tasks: readonly number[]
  readonly stateful: readonly boolean[]
  readonly byPartition?: readonly boolean[]
}

/**
 * The number of changelog partitions of every sub-topology. It has as many as the largest of its topics. One that is
 * fed by boundaries alone has as many as the largest sub-topology that feeds it. These are the rules of Kafka Streams
 * for repartition topics. `made` holds the numbers that an earlier run settled, so that state, and records in topics,
 * stay where they are.
 */
export function changelogPartitions(
  plan: TopologyPlan,
  partitionsOf: (topic: string) => number,
  topicsOfSource: (source: number) => readonly string[],
  made: (subtopology: number) => number | undefined = () => undefined,
): number[] {
  const result = plan.subtopologies.map(({ id }) => made(id) ?? 0)
  const settled = result.map((partitions) => partitions > 0)
  for (const source of plan.sources) {
    if (source.kind !== 'topics' || settled[source.subtopology]) continue
    for (const topic of topicsOfSource(source.index)) {
      result[source.subtopology] = Math.max(result[source.subtopology] ?? 0, partitionsOf(topic))
    }
  }
  const fed = plan.subtopologies.filter((s) => result[s.id] === 0)
  // Sub-topologies may feed one another in a circle. As many rounds as there are sub-topologies reach all of them.
  for (let round = 0; round < fed.length; round++) {
    for (const { id } of fed) {
      for (const boundary of plan.boundaries) {
        if (boundary.toSubtopology === id) result[id] = Math.max(result[id] ?? 0, result[boundary.fromSubtopology] ?? 0)
      }
    }
  }
  return result.map((partitions) => Math.max(1, partitions))
}

export function affinityOf(
  plan: TopologyPlan,
  lanes: number,
  split: SplitMode,
  partitions: readonly number[],
): Affinity {
  const stateful = plan.subtopologies.map((s: SubtopologyPlan) => s.stores.length > 0)
  const tasks = plan.subtopologies.map((s) => {
    const areOfPartitions = stateful[s.id] || split === 'repartition-topics' || s.sharedBy === 'partition-of-key'
    return areOfPartitions ? (partitions[s.id] ?? 1) : lanes
  })
  const byPartition = plan.subtopologies.map((s) => s.sharedBy === 'partition' && s.stores.length === 0)
  return new Affinity({ lanes, split, tasks, stateful, byPartition })
}
