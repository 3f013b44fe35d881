/** The compiled topology without its functions: plain data that threads may send to one another. */
import { type SharedBy, sharedBy } from './keys/by-partition.ts'
import type { CompiledTopology, WatermarkOptions } from './compiled.ts'
import { type Copartitioned, copartitionedSources } from './copartition.ts'
import { beginningsOf } from './changes/diff.ts'
import { heldBackMs, isCircular } from './levels/held-back.ts'
import { nodesBefore, type QuietNode, quietNodes } from './levels/quiet-ways.ts'
import { surroundingsOf } from './changes/surroundings.ts'

export interface SourcePlan {
  readonly index: number
  readonly name: string
  readonly subtopology: number
  readonly kind: 'topics' | 'boundary' | 'scheduled' | 'global'
  readonly topics: readonly string[]
  /** The source text of the pattern. */
  readonly pattern: string | undefined
  /** Its flags: whether case counts, for one. */
  readonly patternFlags?: string | undefined
  readonly watermark: WatermarkOptions
  readonly extractsTimestamp: boolean
  /** See `CompiledSource.carriesValue`. */
  readonly carriesValue: boolean
  readonly boundary: number | undefined
  /** See `CompiledSource.level`. */
  readonly level: number
  readonly schedule: { readonly everyMs: number | undefined; readonly cron: string | undefined } | undefined
}

export interface StorePlan {
  readonly name: string
  readonly subtopology: number
  /**
   * The topic that serves as changelog, without the application's prefix; undefined:
   * `<applicationId>-<name>-changelog`.
   */
  readonly changelogTopic: string | undefined
  readonly kind: 'key-value' | 'window' | 'session' | 'versioned'
  readonly retentionMs: number | undefined
  readonly ttlMs: number | undefined
  /** Serdes by their names. */
  readonly keySerde: string
  readonly valueSerde: string
  readonly timestamped: boolean
  readonly windowSizeMs: number | undefined
  readonly windowAdvanceMs?: number | undefined
  /** See `StoreSpec.sourceTopic`. */
  readonly sourceTopic?: string | undefined
  /** See `StoreState.around`. */
  readonly around?: string | undefined
  /** See `StoreState.holds`. */
  readonly holds: string | undefined
}

export interface SubtopologyPlan {
  readonly id: number
  readonly level: number
  readonly global: boolean
  readonly order: 'event-time' | 'arrival'
  readonly stores: readonly string[]
  readonly sources: readonly number[]
  /** Has windows that close while nothing comes. */
  readonly closesInQuiet?: boolean
  /** Of interest without state; by key where it is not told. */
  readonly sharedBy?: SharedBy
}

export interface BoundaryPlan {
  readonly index: number
  readonly name: string
  /** The name of its topic, without the application's prefix. */
  readonly topic: string
  readonly fromSubtopology: number
  readonly toSubtopology: number
  readonly toSource: number
  /** How long those that feed it may hold a record back, in event time; undefined where that is not known: see `heldBackMs`. */
  readonly heldBackMs?: number | undefined
  /** What goes over it may come back to it: nobody behind it can wait for those who feed it. */
  readonly isCircular?: boolean
  /** Sources whose records go over it, where its sub-topology has others that would wait for it; undefined: all of that one. */
  readonly fedBy?: readonly number[]
  /** Nodes from which records go over it; of interest where windows behind it close in quiet. */
  readonly nodesBefore?: readonly number[]
  /** Sources among these, by index. */
  readonly sourcesBefore?: readonly number[]
}

export interface TopologyPlan {
  readonly levels: number
  readonly sources: readonly SourcePlan[]
  readonly subtopologies: readonly SubtopologyPlan[]
  readonly boundaries: readonly BoundaryPlan[]
  readonly stores: readonly StorePlan[]
  readonly copartitioned?: readonly Copartitioned[]
  /** Nodes with windows that close while nothing comes. */
  readonly quiet?: readonly QuietNode[]
}

function storePlans(topology: CompiledTopology): StorePlan[] {
  const stores: StorePlan[] = []
  const beginnings = beginningsOf(topology)
  const surroundings = surroundingsOf(topology)
  for (const subtopology of topology.subtopologies) {
    for (const name of subtopology.stores) {
      const spec = topology.stores.get(name)
      if (!spec?.changelog) continue
      const { kind, changelogTopic, sourceTopic, retentionMs, ttlMs, timestamped, windowSizeMs, windowAdvanceMs } = spec
      const form = {
        keySerde: spec.keySerde.name,
        valueSerde: spec.valueSerde.name,
        timestamped,
        windowSizeMs,
        windowAdvanceMs,
        holds: beginnings.get(name),
        around: surroundings.get(name),
      }
      stores.push({ name, subtopology: subtopology.id, changelogTopic, sourceTopic, kind, retentionMs, ttlMs, ...form })
    }
  }
  return stores
}

export function planOf(topology: CompiledTopology): TopologyPlan {
  const quiet = quietNodes(topology)
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
        carriesValue,
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
        patternFlags: pattern?.flags,
        watermark,
        extractsTimestamp: timestampExtractor !== undefined,
        carriesValue,
        boundary,
        level,
        schedule: schedule && { everyMs: schedule.everyMs, cron: schedule.cron },
      }),
    ),
    subtopologies: topology.subtopologies.map(({ id, level, global, order, stores, sources, nodes }) => ({
      id,
      level,
      global,
      order,
      stores,
      sources,
      closesInQuiet: quiet.some(({ subtopology }) => subtopology === id),
      sharedBy: sharedBy({ nodes, sources }, topology.nodes, topology.sources),
    })),
    boundaries: topology.boundaries.map((boundary) => {
      const { index, name, topic, fromSubtopology, toSubtopology, toSource } = boundary
      const heldBack = heldBackMs(topology, boundary)
      const circular = isCircular(topology, boundary)
      const ends = { fromSubtopology, toSubtopology, toSource }
      const fedBy = circular && heldBack !== undefined ? before(topology, index).sourcesBefore : undefined
      const told = { heldBackMs: heldBack, isCircular: circular, ...(fedBy && { fedBy }) }
      const isAbove = quiet.some(({ boundaries }) => boundaries.includes(index))
      return { index, name, topic, ...ends, ...told, ...(isAbove && before(topology, index)) }
    }),
    stores: storePlans(topology),
    copartitioned: copartitionedSources(topology),
    quiet,
  }
}

function before(topology: CompiledTopology, boundary: number): Pick<BoundaryPlan, 'nodesBefore' | 'sourcesBefore'> {
  const nodes = nodesBefore(topology, boundary)
  const sources = topology.sources.filter(({ node, kind }) => kind !== 'global' && nodes.has(node))
  return { nodesBefore: [...nodes], sourcesBefore: sources.map(({ index }) => index) }
}

/** Nodes of other sub-topologies from which records come to a node whose windows close in quiet. */
export function nodesElsewhere({ quiet = [], boundaries }: TopologyPlan, node: number): Set<number> {
  const ways = quiet.find((each) => each.node === node)?.boundaries ?? []
  return new Set(ways.flatMap((index) => boundaries[index]?.nodesBefore ?? []))
}
