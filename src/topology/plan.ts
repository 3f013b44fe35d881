/** The compiled topology without its functions: plain data that threads may send to one another. */
import type { CompiledTopology, WatermarkOptions } from './compiled.ts'

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
}

export interface TopologyPlan {
  readonly levels: number
  readonly sources: readonly SourcePlan[]
  readonly subtopologies: readonly SubtopologyPlan[]
  readonly boundaries: readonly BoundaryPlan[]
  readonly stores: readonly StorePlan[]
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
    boundaries: topology.boundaries.map(({ index, name, topic, fromSubtopology, toSubtopology, toSource }) => ({
      index,
      name,
      topic,
      fromSubtopology,
      toSubtopology,
      toSource,
    })),
    stores,
  }
}
