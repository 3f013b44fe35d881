/** Which topics feed a sub-topology. */
import type { TopologyPlan } from './plan.ts'

/** By source index the topics of each; over all hand-offs above it. */
export function topicsAbove(
  plan: TopologyPlan,
  bySource: ReadonlyArray<readonly string[]>,
  subtopology: number,
): ReadonlySet<string> {
  const found = new Set<string>()
  const seen = new Set<number>()
  const next = [subtopology]
  for (let id = next.pop(); id !== undefined; id = next.pop()) {
    if (seen.has(id)) continue
    seen.add(id)
    for (const source of plan.sources) {
      if (source.subtopology !== id) continue
      if (source.kind === 'topics') for (const topic of bySource[source.index] ?? []) found.add(topic)
      const boundary = source.boundary === undefined ? undefined : plan.boundaries[source.boundary]
      if (boundary !== undefined) next.push(boundary.fromSubtopology)
    }
  }
  return found
}
