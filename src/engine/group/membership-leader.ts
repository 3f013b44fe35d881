/** The leader's part in a rebalance: it sees all members and gives everybody's assignment. */
import type { TopicPartition } from '../../base/ids.ts'
import type { BrokerPort, JoinedGroup, TopicInfo } from '../../broker/port.ts'
import { CorruptBatchError } from '../../broker/wire/corrupt.ts'
import { assignCooperatively } from './membership-assignor.ts'
import {
  decodeSubscription,
  encodeAssignment,
  keptTogether,
  type MemberIdentity,
  type RosterEntry,
  type Subscription,
} from './membership-codec.ts'

export interface LeaderOptions {
  readonly broker: BrokerPort
  readonly identity: MemberIdentity
}

/** `topics`: those that the leader itself reads. */
export async function assignAll(
  { broker, identity }: LeaderOptions,
  topics: readonly TopicInfo[],
  joined: JoinedGroup,
): Promise<Array<{ memberId: string; assignment: Uint8Array }>> {
  const members = joined.members
    .map(({ memberId, groupInstanceId, metadata }) => ({ memberId, groupInstanceId, ...subscriptionOf(metadata) }))
    .sort(bySeniority)
  const partitions = await partitionCounts(broker, topics, members)
  // Of all releases: what the leader's own does not keep together may be a stream and its table in a newer one.
  const sets = members.flatMap(({ together }) => together)
  const coPartitioned = [...new Map(sets.map((set) => [set.toSorted().join('\n'), set])).values()]
  const assigned = assignCooperatively({ members, partitions, coPartitioned, exclusive: identity.exclusive })
  const isAsked = members.some(({ identity: said }) => said?.address !== undefined)
  const roster = members.map(({ memberId, groupInstanceId, identity: said, owned }): RosterEntry => {
    const keeps = assigned.get(memberId) ?? []
    return {
      memberId,
      groupInstanceId,
      identity: said ?? null,
      ...(isAsked && { owns: byTopic(keeps) }),
      ...(owned.some((each) => !isAmong(each, keeps)) && { gives: true }),
    }
  })
  const readBy = new Map(members.map(({ memberId, topics: read }) => [memberId, read]))
  return [...assigned].map(([memberId, list]) => {
    const reads = Object.fromEntries((readBy.get(memberId) ?? []).map((topic) => [topic, partitions.get(topic) ?? 0]))
    const told = roster.map((entry) =>
      entry.memberId === memberId ? { ...entry, reads, together: keptTogether(reads, coPartitioned) } : entry,
    )
    return { memberId, assignment: encodeAssignment({ partitions: list, roster: told }) }
  })
}

const isAmong = ({ topic, partition }: TopicPartition, all: readonly TopicPartition[]): boolean =>
  all.some((each) => each.topic === topic && each.partition === partition)

function byTopic(partitions: readonly TopicPartition[]): Record<string, number[]> {
  const owned = Map.groupBy(partitions, ({ topic }) => topic)
  return Object.fromEntries([...owned].map(([topic, list]) => [topic, list.map(({ partition }) => partition)]))
}

/** A member whose words cannot be read is one of another kind: it is shown, and gets nothing. */
function subscriptionOf(metadata: Uint8Array): Subscription {
  try {
    return decodeSubscription(metadata)
  } catch (error) {
    if (!(error instanceof CorruptBatchError)) throw error
    return { topics: [], owned: [], generationId: -1, identity: undefined, together: [] }
  }
}

/** Also of topics that only others read. */
async function partitionCounts(
  broker: BrokerPort,
  topics: readonly TopicInfo[],
  members: readonly Subscription[],
): Promise<Map<string, number>> {
  const counts = new Map(topics.map(({ topic, partitions }) => [topic, partitions]))
  const others = new Set(members.flatMap((member) => member.topics).filter((topic) => !counts.has(topic)))
  if (others.size > 0) {
    for (const { topic, partitions } of await broker.topics([...others])) counts.set(topic, partitions)
  }
  return counts
}

/** Those that have partitions, then those that had a place, then the rest. */
function bySeniority(a: Subscription & { memberId: string }, b: Subscription & { memberId: string }): number {
  return (
    Number(b.owned.length > 0) - Number(a.owned.length > 0) ||
    b.generationId - a.generationId ||
    (a.memberId < b.memberId ? -1 : 1)
  )
}
