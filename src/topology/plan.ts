/** The compiled topology without its functions: plain data that threads may send to one another. */
import type { Boundary, CompiledNode, CompiledSubtopology, CompiledTopology, WatermarkOptions } from './compiled.ts'
import { type Copartitioned, copartitionedSources } from './copartition.ts'
import type { OperatorSpec } from './operator-spec.ts'

export interface SourcePlan {
  readonly index: number
  readonly name: string
  readonly subtopology: number
  readonly kind: 'topics' | 'boundary' | 'scheduled' | 'global'
  readonly topics: readonly string[]
  /** Source text of the pattern. */
  readonly pattern: string | undefined
  readonly watermark: WatermarkOptions
  readonly extractsTimestamp: boolean
  readonly boundary: number | undefined
  /** See `CompiledSource.level`. */
  readonly level: number
  readonly schedule: { readonly everyMs: number | undefined; readonly cron: string | undefined } | undefined
}

export interface StorePlan {
  readonly name: string
  readonly subtopology: number
  /** Topic that serves as changelog without the application's prefix; undefined: `<applicationId>-<name>-changelog`. */
  readonly changelogTopic: string | undefined
  readonly kind: 'key-value' | 'window' | 'session' | 'versioned'
  readonly retentionMs: number | undefined
}

export interface SubtopologyPlan {
  readonly id: number
  readonly level: number
  readonly global: boolean
  readonly stores: readonly string[]
  readonly sources: readonly number[]
}

export interface BoundaryPlan {
  readonly index: number
  readonly name: string
  /** Name of its topic without the application's prefix. */
  readonly topic: string
  readonly fromSubtopology: number
  readonly toSubtopology: number
  readonly toSource: number
  /** Whoever feeds it passes on at once what a record brings, no older than the record: see `isPrompt`. */
  readonly prompt?: boolean
}

export interface TopologyPlan {
  readonly levels: number
  readonly sources: readonly SourcePlan[]
  readonly subtopologies: readonly SubtopologyPlan[]
  readonly boundaries: readonly BoundaryPlan[]
  readonly stores: readonly StorePlan[]
  readonly copartitioned?: readonly Copartitioned[]
}

export function planOf(topology: CompiledTopology): TopologyPlan {
  const stores: StorePlan[] = []
  for (const subtopology of topology.subtopologies) {
    for (const name of subtopology.stores) {
      const spec = topology.stores.get(name)
      if (!spec?.changelog) continue
      const { kind, changelogTopic, retentionMs } = spec
      stores.push({ name, subtopology: subtopology.id, changelogTopic, kind, retentionMs })
    }
  }
  return {
    levels: topology.levels,
    sources: topology.sources.map(
      ({
        index,
        name,
        subtopology,
        kind,
        topics,
        pattern,
        watermark,
        timestampExtractor,
        boundary,
        level,
        schedule,
      }) => ({
        index,
        name,
        subtopology,
        kind,
        topics,
        pattern: pattern?.source,
        watermark,
        extractsTimestamp: timestampExtractor !== undefined,
        boundary,
        level,
        schedule: schedule && { everyMs: schedule.everyMs, cron: schedule.cron },
      }),
    ),
    subtopologies: topology.subtopologies.map(({ id, level, global, stores, sources }) => ({
      id,
      level,
      global,
      stores,
      sources,
    })),
    boundaries: topology.boundaries.map((boundary) => {
      const { index, name, topic, fromSubtopology, toSubtopology, toSource } = boundary
      const prompt = isPrompt(topology, boundary)
      return { index, name, topic, fromSubtopology, toSubtopology, toSource, prompt }
    }),
    stores,
    copartitioned: copartitionedSources(topology),
  }
}

/** Operators that answer a record at once or not at all, with nothing that is older than the record. */
const promptOperators: ReadonlySet<string> = new Set<OperatorSpec['op']>([
  'source',
  'filter',
  'map',
  'mapValues',
  'flatMap',
  'flatMapValues',
  'selectKey',
  'peek',
  'passThrough',
  'branch',
  'nullKeyFilter',
  'sink',
  'handOff',
  'tableSource',
  'tableFilter',
  'tableMapValues',
  'tableToStream',
  'tableGroupBy',
  'tableAggregate',
  'streamAggregate',
  'tableJoin',
  'tableJoinMerge',
])

/**
 * What a sub-topology has read is what it has passed on, once it commits: no timer, no window that closes, no record
 * that waits for a partner, and no circle by which it would wait for itself.
 */
function isPrompt(topology: CompiledTopology, { fromSubtopology, toSubtopology }: Boundary): boolean {
  const { nodes } = topology.subtopologies[fromSubtopology] as CompiledSubtopology
  const prompt = nodes.every((node) => {
    const { spec } = topology.nodes[node] as CompiledNode
    if (spec.op === 'windowAggregate') return spec.emit === 'update'
    if (spec.op === 'streamTableJoin') return spec.grace === undefined
    return promptOperators.has(spec.op)
  })
  return prompt && !leadsTo(topology, toSubtopology, fromSubtopology)
}

function leadsTo({ boundaries }: CompiledTopology, from: number, to: number): boolean {
  const reached = new Set([from])
  // A set that grows while it is walked: each sub-topology is looked at once.
  for (const each of reached) {
    for (const boundary of boundaries) if (boundary.fromSubtopology === each) reached.add(boundary.toSubtopology)
  }
  return reached.has(to)
}
