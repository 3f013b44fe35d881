/** Which partitions bring records to the same task, so that dispatch has to choose between their heads. */
import type { TopologyPlan } from '../../topology/plan.ts'
import type { EngineSettings } from '../settings.ts'
import type { ResolvedTopics } from '../group/topics.ts'

/**
 * Equal names for partitions whose records may meet. Keys that meet lie in partitions of the same number, unless the
 * topics of a join differ in how many they have: in process the hash alone then finds the task, and any partition may
 * feed any. Records that are handed over between tasks meet those of any partition of all sub-topologies on their way.
 */
export function taskNames(
  { plan, split }: EngineSettings,
  { topics, bySource }: ResolvedTopics,
): (source: number, partition: number) => string {
  const uneven = new Set<number>()
  for (const { sources } of split === 'in-process' ? (plan.copartitioned ?? []) : []) {
    const names = sources.flatMap((source) => bySource[source] ?? [])
    const counts = new Set(names.map((topic) => topics.get(topic)?.partitions))
    if (counts.size > 1) for (const source of sources) uneven.add(plan.sources[source]?.subtopology ?? 0)
  }
  const connected = split === 'in-process' ? connectedByHandOffs(plan) : new Map<number, number>()
  return (source, partition) => {
    const subtopology = plan.sources[source]?.subtopology ?? 0
    const together = connected.get(subtopology)
    if (together !== undefined) return `connected ${together}`
    return uneven.has(subtopology) ? String(subtopology) : `${subtopology}_${partition}`
  }
}

/** By sub-topology the first one of those that hand records to one another, where that is in the order of event time. */
function connectedByHandOffs({ boundaries, subtopologies }: TopologyPlan): Map<number, number> {
  const first = new Map<number, number>()
  const find = (id: number): number => {
    const above = first.get(id) ?? id
    return above === id ? id : find(above)
  }
  for (const { fromSubtopology, toSubtopology } of boundaries) {
    if (subtopologies[toSubtopology]?.order === 'arrival') continue
    const [a, b] = [find(fromSubtopology), find(toSubtopology)]
    first.set(Math.max(a, b), Math.min(a, b))
    first.set(Math.min(a, b), Math.min(a, b))
  }
  return new Map([...first.keys()].map((id) => [id, find(id)]))
}
