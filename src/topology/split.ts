/**
 * The topology as it runs where sub-topologies exchange records through topics instead of handing them over in the
 * process. Every source is read from the broker. So there is one level, and nothing waits for anything within a
 * barrier. Tables tell each update there, for readers behind a topic wait for the time that writers announce.
 */
import type { CompiledSource, CompiledTopology } from './compiled.ts'
import type { OperatorSpec } from './operator-spec.ts'
import { waitForAbove } from './levels/wait-for-above.ts'

/** Operators that are told that others read behind a topic what they put out, or that they read so themselves. */
const told: ReadonlySet<OperatorSpec['op']> = new Set([
  'tableGroupBy',
  'foreignKeySend',
  'foreignKeyJoin',
  'foreignTableJoin',
  'foreignKeyResolve',
])

export type SplitMode = 'in-process' | 'repartition-topics'

export function splitTopology(topology: CompiledTopology, split: SplitMode): CompiledTopology {
  if (split === 'in-process') return waitForAbove(topology, false).topology
  const waiting = waitForAbove(topology, true).topology
  const disorder = disorderOf(waiting)
  return {
    ...waiting,
    levels: 1,
    nodes: waiting.nodes.map((node) => {
      const { spec } = node
      return told.has(spec.op) ? { ...node, spec: { ...spec, throughTopic: true } as OperatorSpec } : node
    }),
    // What a table still has to tell would hold up those who wait for what its task has announced.
    perCommit: new Map(),
    sources: topology.sources.map((source) => ({
      ...source,
      level: 0,
      watermark: { ...source.watermark, maxOutOfOrdernessMs: disorder[source.index] as number },
    })),
    subtopologies: topology.subtopologies.map((subtopology) => ({ ...subtopology, level: 0 })),
  }
}

/** The out-of-orderness of each source. The topic of a boundary is as disordered as what flows into it. */
function disorderOf(topology: CompiledTopology): number[] {
  const { sources, boundaries } = topology
  const disorder = sources.map((source) => source.watermark.maxOutOfOrdernessMs)
  // Sub-topologies may feed one another in a circle. As many rounds as there are boundaries reach all of them.
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
