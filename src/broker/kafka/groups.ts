/** Consumer groups by the classic protocol, and their offsets. */
import {
  describeGroupsV5,
  heartbeatV4,
  joinGroupV9,
  leaveGroupV4,
  offsetCommitV8,
  offsetFetchV8,
  syncGroupV5,
} from '@platformatic/kafka'
import type { TopicPartition } from '../../base/ids.ts'
import type {
  CommittedOffset,
  GroupDescription,
  GroupMember,
  JoinedGroup,
  JoinRequest,
  OffsetToCommit,
} from '../port.ts'
import type { Cluster } from './cluster.ts'
import type { Link } from './connections.ts'
import { answered, errorName, refused } from './errors.ts'
import { throwGravest } from './transactions.ts'
import { asBuffer, byTopic } from './wire-calls.ts'

const protocolType = 'consumer'
/** Beyond the time that the coordinator itself may take. */
const marginMs = 15_000
/** A follower waits for its leader at most this long; a coordinator answers earlier when the leader is lost. */
const syncTimeoutMs = 300_000

export class Groups {
  readonly #cluster: Cluster

  constructor(cluster: Cluster) {
    this.#cluster = cluster
  }

  async join(request: JoinRequest): Promise<JoinedGroup> {
    const { groupId, groupInstanceId, sessionTimeoutMs, rebalanceTimeoutMs } = request
    const what = `joining group ${groupId}`
    const protocols = request.protocols.map(({ name, metadata }) => ({ name, metadata: asBuffer(metadata) }))
    let memberId = request.memberId
    const timeoutMs = rebalanceTimeoutMs + marginMs
    const attempt = async (connection: Parameters<typeof joinGroupV9.api.async>[0]) =>
      answered(
        joinGroupV9.api.async(
          connection,
          groupId,
          sessionTimeoutMs,
          rebalanceTimeoutMs,
          memberId,
          groupInstanceId,
          protocolType,
          protocols,
          null,
        ),
      )
    const call = async ({ connection }: { connection: Parameters<typeof joinGroupV9.api.async>[0] }) => {
      let answer = await attempt(connection)
      if (errorName(answer.errorCode) === 'MEMBER_ID_REQUIRED') {
        memberId = answer.memberId
        answer = await attempt(connection)
      }
      if (answer.errorCode !== 0) throw refused(answer.errorCode, what)
      return answer
    }
    const answer = await this.#cluster.onCoordinator('group', groupId, what, call, { aloneForMs: timeoutMs })
    return {
      memberId: answer.memberId,
      generationId: answer.generationId,
      leaderId: answer.leader,
      protocol: answer.protocolName ?? '',
      skipAssignment: answer.skipAssignment,
      members: answer.members.map((member) => ({
        memberId: member.memberId,
        groupInstanceId: member.groupInstanceId ?? null,
        metadata: new Uint8Array(member.metadata),
      })),
    }
  }

  async sync(
    member: GroupMember,
    protocol: string,
    assignments: ReadonlyArray<{ readonly memberId: string; readonly assignment: Uint8Array }>,
  ): Promise<Uint8Array> {
    const what = `syncing with group ${member.groupId}`
    const sent = assignments.map(({ memberId, assignment }) => ({ memberId, assignment: asBuffer(assignment) }))
    return this.#cluster.onCoordinator(
      'group',
      member.groupId,
      what,
      async ({ connection }) => {
        const answer = await answered(
          syncGroupV5.api.async(
            connection,
            member.groupId,
            member.generationId,
            member.memberId,
            member.groupInstanceId,
            protocolType,
            protocol,
            sent,
          ),
        )
        if (answer.errorCode !== 0) throw refused(answer.errorCode, what)
        return new Uint8Array(answer.assignment)
      },
      { aloneForMs: syncTimeoutMs },
    )
  }

  async heartbeat(member: GroupMember): Promise<void> {
    const what = `the heartbeat to group ${member.groupId}`
    await this.#cluster.onCoordinator('group', member.groupId, what, async ({ connection }) => {
      const { groupId, generationId, memberId, groupInstanceId } = member
      const answer = await answered(heartbeatV4.api.async(connection, groupId, generationId, memberId, groupInstanceId))
      if (answer.errorCode !== 0) throw refused(answer.errorCode, what)
    })
  }

  async leave(member: GroupMember): Promise<void> {
    const what = `leaving group ${member.groupId}`
    await this.#cluster.onCoordinator('group', member.groupId, what, async ({ connection }) => {
      const { memberId, groupInstanceId } = member
      const answer = await answered(leaveGroupV4.api.async(connection, member.groupId, [{ memberId, groupInstanceId }]))
      const code = answer.errorCode || (answer.members[0]?.errorCode ?? 0)
      if (code !== 0) throw refused(code, what)
    })
  }

  async describe(groupId: string): Promise<GroupDescription> {
    const what = `describing group ${groupId}`
    return this.#cluster.onCoordinator('group', groupId, what, async ({ connection }) => {
      const answer = await answered(describeGroupsV5.api.async(connection, [groupId], false))
      const group = answer.groups[0]
      if (!group || errorName(group.errorCode) === 'GROUP_ID_NOT_FOUND') return { state: 'Dead', members: [] }
      if (group.errorCode !== 0) throw refused(group.errorCode, what)
      return {
        state: group.groupState,
        members: group.members.map(({ memberId, groupInstanceId, clientId, clientHost, memberMetadata }) => ({
          memberId,
          groupInstanceId: groupInstanceId ?? null,
          clientId,
          clientHost,
          ...(memberMetadata.length > 0 && { metadata: new Uint8Array(memberMetadata) }),
        })),
      }
    })
  }

  async commit(member: GroupMember, offsets: readonly OffsetToCommit[]): Promise<void> {
    if (offsets.length === 0) return
    const what = `committing offsets of group ${member.groupId}`
    const topics = byTopic(offsets).map(([name, items]) => ({
      name,
      partitions: items.map((item) => ({
        partitionIndex: item.partition,
        committedOffset: BigInt(item.offset),
        committedLeaderEpoch: -1,
        committedMetadata: item.metadata,
      })),
    }))
    const call = async ({ connection }: Link): Promise<void> => {
      const { groupId, generationId, memberId, groupInstanceId } = member
      const answer = await answered(
        offsetCommitV8.api.async(connection, groupId, generationId, memberId, groupInstanceId, topics),
      )
      throwGravest(
        answer.topics.flatMap(({ name, partitions }) =>
          partitions.map((p) => ({ errorCode: p.errorCode, what: `${what} (${name}:${p.partitionIndex})` })),
        ),
      )
    }
    await this.#cluster.onCoordinator('group', member.groupId, what, call, 'commit')
  }

  async committed(
    groupId: string,
    partitions: readonly TopicPartition[] | null,
    requireStable: boolean,
  ): Promise<CommittedOffset[]> {
    if (partitions?.length === 0) return []
    const what = `reading the offsets of group ${groupId}`
    const topics =
      partitions &&
      byTopic(partitions).map(([name, items]) => ({ name, partitionIndexes: items.map((item) => item.partition) }))
    return this.#cluster.onCoordinator('group', groupId, what, async ({ connection }) => {
      const asked = { groupId, memberEpoch: -1, topics }
      const answer = await answered(offsetFetchV8.api.async(connection, [asked], requireStable))
      const group = answer.groups[0]
      if (!group) return []
      if (group.errorCode !== 0) throw refused(group.errorCode, what)
      const found = group.topics.flatMap((topic) => topic.partitions.map((p) => ({ topic: topic.name, ...p })))
      throwGravest(found.map((p) => ({ errorCode: p.errorCode, what: `${what} (${p.topic}:${p.partitionIndex})` })))
      return found.map((p) => ({
        topic: p.topic,
        partition: p.partitionIndex,
        offset: Number(p.committedOffset),
        metadata: p.metadata ?? '',
      }))
    })
  }
}
