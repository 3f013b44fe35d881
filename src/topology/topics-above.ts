/** Which topics feed a sub-topology. */
import type { TopologyPlan } from './plan.ts'

/** The sub-topology, and those that hand records over to it, whichever way. */
export function subtopologiesAbove(plan: TopologyPlan, subtopology: number): ReadonlySet<number> {
  const seen = new Set<number>()
  const next = [subtopology]
  for (let id = next.pop(); id !== undefined; id = next.pop()) {
    if (seen.has(id)) continue
    seen.add(id)
    for (const source of plan.sources) {
      const boundary = source.boundary === undefined ? undefined : plan.boundaries[source.boundary]
      if (source.subtopology === id && boundary !== undefined) next.push(boundary.fromSubtopology)
    }
  }
  return seen
}

/** By source index the topics of each; over all hand-offs above it. */
export function topicsAbove(
  plan: TopologyPlan,
  bySource: ReadonlyArray<readonly string[]>,
  subtopology: number,
): ReadonlySet<string> {
  const above = subtopologiesAbove(plan, subtopology)
  const read = plan.sources.filter((source) => source.kind === 'topics' && above.has(source.subtopology))
  return new Set(read.flatMap(({ index }) => bySource[index] ?? []))
}
