/** Which process has which task, as the leader of the group told: for whoever looks for a key. */
import { partitionKey, type TopicPartition } from '../../base/ids.ts'
import type { GroupPlaces } from '../../view/view.ts'
import type { EngineSettings } from '../settings.ts'
import { tasksOf } from './assignment.ts'
import type { RosterEntry } from './membership-codec.ts'
import type { ResolvedTopics } from './topics.ts'

/** `others`: the members beside this one. `given`: what this one may work on. */
export function placesOf(
  settings: EngineSettings,
  topics: ResolvedTopics,
  others: readonly RosterEntry[],
  given: readonly TopicPartition[],
  isTold: boolean,
): GroupPlaces {
  const idsOf = (partitions: readonly TopicPartition[]): string[] =>
    tasksOf(settings, topics, partitions).map(({ subtopology, partition }) => `${subtopology}_${partition}`)
  const placeOf = ({ identity, owns }: RosterEntry): GroupPlaces['others'][number] => {
    return { address: webAddress(identity?.address), tasks: idsOf(partitionsOf(owns ?? {})) }
  }
  return { tasks: topics.changelogPartitions, own: idsOf(given), isTold, others: others.map(placeOf) }
}

/** What a member says of itself becomes a link: nothing else than an address of the web is passed on. */
function webAddress(said: unknown): string | null {
  const url = typeof said === 'string' ? URL.parse(said) : null
  return url !== null && /^https?:$/.test(url.protocol) ? String(said) : null
}

function partitionsOf(owns: NonNullable<RosterEntry['owns']>): TopicPartition[] {
  return Object.entries(owns).flatMap(([topic, list]) => list.map((partition) => ({ topic, partition })))
}

/** Partitions by their names, to be looked up. */
export function keysOf(partitions: readonly TopicPartition[]): Set<string> {
  return new Set(partitions.map(({ topic, partition }) => partitionKey(topic, partition)))
}
