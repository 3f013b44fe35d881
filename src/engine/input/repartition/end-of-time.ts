/**
 * The end of the input where processes share it. All tasks come to the newest time that any of the group has seen, those of one
 * depth after the other, for what one tells at its end is input of the next, in whatever process that is. Commits tell how far each
 * task has come. A process that is not asked for its end never comes there: it is waited for as long as the group comes further.
 */
import { type PartitionKey, partitionKey } from '../../../base/ids.ts'
import type { CommittedOffset } from '../../../broker/port.ts'
import type { Watermarks } from '../../../time/watermarks.ts'
import type { TopologyPlan } from '../../../topology/plan.ts'
import { decodeTag } from '../../commit/tag.ts'
import type { EngineOptions } from '../../engine-options.ts'
import type { ResolvedTopics } from '../../group/topics.ts'
import type { Route } from '../dispatcher.ts'
import { timingOf } from '../source-timing.ts'

/** `rose`: some task has come further, or is to tell so. `waits`: others are to come further first. */
export type Ending = 'rose' | 'waits' | 'ended'

/** For so long others may come no further before they are waited for no longer. */
const patienceMs = 5000
const never = Number.NEGATIVE_INFINITY

interface Member {
  readonly key: PartitionKey
  readonly topic: string
  readonly partition: number
  readonly source: number
  readonly depth: number
}

/** What a commit says of a partition. */
interface Told {
  readonly offset: number
  readonly maxTimestamp: number
  readonly watermark: number
}

const nothing: Told = { offset: -1, maxTimestamp: never, watermark: never }

export class EndOfTime {
  readonly #o: Pick<EngineOptions, 'settings' | 'broker' | 'clock'>
  readonly #watermarks: Watermarks
  readonly #routes: ReadonlyMap<PartitionKey, Route>
  readonly #depths: readonly number[]
  readonly #owes: (key: PartitionKey) => void
  #last: ReadonlyMap<PartitionKey, Told> = new Map()
  #since = never

  /** `owes`: the next commit is to tell of this partition. */
  constructor(
    options: Pick<EngineOptions, 'settings' | 'broker' | 'clock'>,
    watermarks: Watermarks,
    routes: ReadonlyMap<PartitionKey, Route>,
    owes: (key: PartitionKey) => void,
  ) {
    this.#owes = owes
    this.#o = options
    this.#watermarks = watermarks
    this.#routes = routes
    this.#depths = depthsOf(options.settings.plan)
  }

  /** Brings tasks further whose turn it is. */
  async close(topics: ResolvedTopics): Promise<Ending> {
    const { broker, settings } = this.#o
    const group = this.#membersOf(topics)
    const committed = await broker.committedOffsets(settings.applicationId, group, false)
    const told = new Map(committed.map((at) => [partitionKey(at.topic, at.partition), toldBy(at)]))
    this.#notice(told)
    const end = this.#endOf(group, told)
    const untold = group.filter(({ key }) => (told.get(key) ?? nothing).watermark < end)
    const behind = [...this.#routes.values()].filter(({ handle }) => this.#watermarks.inForce(handle) < end)
    const depth = Math.min(...behind.map(({ subtopology }) => this.#depths[subtopology] as number))
    if (untold.every((each) => each.depth >= depth) || !this.#isPatient) {
      for (const { handle, subtopology } of behind)
        if (this.#depths[subtopology] === depth) this.#watermarks.raiseTask(handle, end)
    }
    let rose = false
    for (const { key } of untold) {
      const route = this.#routes.get(key)
      if (route === undefined || this.#watermarks.inForce(route.handle) < end) continue
      this.#owes(key)
      rose = true
    }
    if (rose) return 'rose'
    // What others have not come to the end with may come to this process, with its partitions.
    return untold.length > 0 && this.#isPatient ? 'waits' : 'ended'
  }

  get #isPatient(): boolean {
    return this.#o.clock.monotonic() - this.#since < patienceMs
  }

  /** Whether others have come further since the last call. */
  #notice(told: ReadonlyMap<PartitionKey, Told>): void {
    const isSame = [...told].every(([key, { offset, watermark }]) => {
      const last = this.#last.get(key)
      return this.#routes.has(key) || (last?.offset === offset && last.watermark === watermark)
    })
    this.#last = told
    if (!isSame) this.#since = this.#o.clock.monotonic()
  }

  /** The watermark that the partition that is furthest has by itself, of all that the group reads. */
  #endOf(group: readonly Member[], told: ReadonlyMap<PartitionKey, Told>): number {
    let end = never
    for (const { key, source } of group) {
      const route = this.#routes.get(key)
      const { maxTimestamp } = told.get(key) ?? nothing
      const reached = route === undefined ? never : this.#watermarks.maxTs(route.handle)
      end = Math.max(end, Math.max(maxTimestamp, reached) - timingOf(this.#o.settings, source).maxOutOfOrdernessMs)
    }
    return end
  }

  #membersOf({ topics, bySource }: ResolvedTopics): Member[] {
    const { sources } = this.#o.settings.plan
    return sources.flatMap(({ index: source, kind, subtopology }) =>
      (kind === 'global' ? [] : (bySource[source] ?? [])).flatMap((topic) =>
        Array.from({ length: topics.get(topic)?.partitions ?? 0 }, (_, partition) => {
          const depth = this.#depths[subtopology] as number
          return { key: partitionKey(topic, partition), topic, partition, source, depth }
        }),
      ),
    )
  }
}

function toldBy({ offset, metadata }: CommittedOffset): Told {
  const { maxTimestamp, watermark } = decodeTag(metadata) ?? nothing
  return { offset, maxTimestamp, watermark }
}

/** Of each sub-topology, how many topics between sub-topologies lie before it at most; circles are not counted. */
function depthsOf({ subtopologies, boundaries }: TopologyPlan): number[] {
  const depths = subtopologies.map(() => 0)
  const ways = boundaries.filter(({ isCircular }) => isCircular !== true)
  for (let round = 0; round < ways.length; round++) {
    for (const { fromSubtopology, toSubtopology } of ways)
      depths[toSubtopology] = Math.max(depths[toSubtopology] as number, (depths[fromSubtopology] as number) + 1)
  }
  return depths
}
