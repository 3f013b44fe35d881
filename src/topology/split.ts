/**
 * The topology as it runs where sub-topologies exchange records through topics instead of handing over in process:
 * every source is read from the broker, so there is one level, and nothing waits for anything within a barrier.
 */
import type { CompiledSource, CompiledTopology } from './compiled.ts'

export type SplitMode = 'in-process' | 'repartition-topics'

export function splitTopology(topology: CompiledTopology, split: SplitMode): CompiledTopology {
  if (split === 'in-process') return topology
  const disorder = disorderOf(topology)
  return {
    ...topology,
    levels: 1,
    sources: topology.sources.map((source) => ({
      ...source,
      level: 0,
      watermark: { ...source.watermark, maxOutOfOrdernessMs: disorder[source.index] as number },
    })),
    subtopologies: topology.subtopologies.map((subtopology) => ({ ...subtopology, level: 0 })),
  }
}

/** Out-of-orderness by source: a boundary's topic is as disordered as what flows into it. */
function disorderOf(topology: CompiledTopology): number[] {
  const { sources, boundaries } = topology
  const disorder = sources.map((source) => source.watermark.maxOutOfOrdernessMs)
  // Sub-topologies may feed one another in a circle: as many rounds as there are boundaries reach everyone.
  for (let round = 0; round < boundaries.length; round++) {
    for (const source of sources) {
      const boundary = source.boundary === undefined ? undefined : boundaries[source.boundary]
      if (!boundary) continue
      const feeding = sources.filter((s: CompiledSource) => s.subtopology === boundary.fromSubtopology)
      const own = disorder[source.index] as number
      disorder[source.index] = Math.max(own, ...feeding.map((s) => disorder[s.index] as number))
    }
  }
  return disorder
}
