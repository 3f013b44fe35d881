/** Which partitions bring records to the same task, so that dispatch has to choose between their heads. */
import type { EngineSettings } from './settings.ts'
import type { ResolvedTopics } from './topics.ts'

/**
 * Equal names for partitions that feed one task. Keys that meet lie in partitions of the same number, unless the topics
 * of a join differ in how many they have: in process the hash alone then finds the task, and any partition may feed any.
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
  return (source, partition) => {
    const subtopology = plan.sources[source]?.subtopology ?? 0
    return uneven.has(subtopology) ? String(subtopology) : `${subtopology}_${partition}`
  }
}
