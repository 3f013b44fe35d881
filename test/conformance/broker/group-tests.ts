import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { GroupMember } from '../../../src/broker/port.ts'
import type { SuiteContext } from './suite.ts'
import {
  heartbeatUntil,
  joinAlone,
  joinRequest,
  memberOf,
  newTopic,
  refused,
  subscription,
  text,
  unique,
} from './support.ts'

export function groupTests(context: SuiteContext): void {
  const plain = (bytes: Uint8Array): string => Buffer.from(bytes).toString()

  /** Two members in one generation; the first is the leader and gave the assignments. */
  async function pair(group: string): Promise<readonly [GroupMember, GroupMember]> {
    const first = await joinAlone(context.one, group)
    const joiningSecond = context.other.joinGroup(joinRequest(group))
    await heartbeatUntil(context.one, first, 'REBALANCE_IN_PROGRESS')
    const [a, b] = await Promise.all([
      context.one.joinGroup(joinRequest(group, { memberId: first.memberId })),
      joiningSecond,
    ])
    assert.equal(a.generationId, b.generationId)
    assert.ok(a.generationId > first.generationId)
    assert.equal(a.leaderId, b.leaderId)
    const [leader, follower] = a.leaderId === a.memberId ? [a, b] : [b, a]
    assert.equal(follower.members.length, 0)
    assert.deepEqual(leader.members.map((m) => m.memberId).sort(), [a.memberId, b.memberId].sort())
    const assignments = leader.members.map((m) => ({ memberId: m.memberId, assignment: text(`for ${m.memberId}`) }))
    const [forA, forB] = await Promise.all([
      context.one.syncGroup(memberOf(group, a), a.protocol, a === leader ? assignments : []),
      context.other.syncGroup(memberOf(group, b), b.protocol, b === leader ? assignments : []),
    ])
    assert.equal(plain(forA), `for ${a.memberId}`)
    assert.equal(plain(forB), `for ${b.memberId}`)
    return [memberOf(group, a), memberOf(group, b)]
  }

  test('a first member leads, assigns and stays while it shows life', async () => {
    const group = unique('group')
    const joined = await context.one.joinGroup(joinRequest(group))
    assert.equal(joined.leaderId, joined.memberId)
    assert.equal(joined.protocol, 'range')
    assert.deepEqual(
      joined.members.map((m) => [m.memberId, m.groupInstanceId, m.metadata]),
      [[joined.memberId, null, subscription('about me')]],
    )
    const member = memberOf(group, joined)
    const assignment = await context.one.syncGroup(member, joined.protocol, [
      { memberId: joined.memberId, assignment: text('all') },
    ])
    assert.equal(plain(assignment), 'all')
    await context.one.heartbeat(member)
    const description = await context.other.describeGroup(group)
    assert.equal(description.state, 'Stable')
    assert.deepEqual(
      description.members.map((m) => [m.memberId, m.metadata]),
      [[joined.memberId, subscription('about me')]],
    )
    await context.one.leaveGroup(member)
    assert.deepEqual(await context.other.describeGroup(group), { state: 'Empty', members: [] })
    await refused(context.one.heartbeat(member), 'UNKNOWN_MEMBER_ID')
  })

  test('a group that nobody ever joined has no members', async () => {
    assert.deepEqual((await context.one.describeGroup(unique('group'))).members, [])
  })

  test('a second member makes the group rebalance, and both get what the leader gave them', async () => {
    await pair(unique('group'))
  })

  test('when a member leaves the others rebalance', async () => {
    const group = unique('group')
    const [first, second] = await pair(group)
    await context.other.leaveGroup(second)
    await heartbeatUntil(context.one, first, 'REBALANCE_IN_PROGRESS')
    const again = await context.one.joinGroup(joinRequest(group, { memberId: first.memberId }))
    assert.equal(again.members.length, 1)
    assert.ok(again.generationId > first.generationId)
  })

  test('a member of an older generation is told so', async () => {
    const group = unique('group')
    const [first] = await pair(group)
    await refused(context.one.heartbeat({ ...first, generationId: first.generationId - 1 }), 'ILLEGAL_GENERATION')
    await refused(context.one.heartbeat({ ...first, memberId: 'nobody' }), 'UNKNOWN_MEMBER_ID')
    await refused(context.one.joinGroup(joinRequest(group, { memberId: 'nobody' })), 'UNKNOWN_MEMBER_ID')
  })

  test('members agree on the protocol that all know', async () => {
    const group = unique('group')
    const both = ['own', 'range'].map((name) => ({ name, metadata: subscription(name) }))
    const first = await joinAlone(context.one, group, { protocols: both })
    const joiningSecond = context.other.joinGroup(joinRequest(group))
    await heartbeatUntil(context.one, first, 'REBALANCE_IN_PROGRESS')
    const rejoined = await context.one.joinGroup(joinRequest(group, { memberId: first.memberId, protocols: both }))
    assert.equal(rejoined.protocol, 'range')
    assert.equal((await joiningSecond).protocol, 'range')
    await refused(
      context.one.joinGroup(joinRequest(group, { protocols: [{ name: 'foreign', metadata: subscription('') }] })),
      'INCONSISTENT_GROUP_PROTOCOL',
    )
  })

  test('a static member that comes back takes its place at once, and the one before it is fenced', async () => {
    const topic = await newTopic(context.one)
    const group = unique('group')
    const groupInstanceId = 'the-active'
    const old = await joinAlone(context.one, group, { groupInstanceId })
    const [usual] = joinRequest(group).protocols
    const protocols = [{ name: usual?.name ?? '', metadata: subscription('the successor') }]
    const joined = await context.other.joinGroup(joinRequest(group, { groupInstanceId, protocols }))
    assert.equal(joined.generationId, old.generationId)
    assert.notEqual(joined.memberId, old.memberId)
    const successor = memberOf(group, joined, groupInstanceId)
    assert.equal(plain(await context.other.syncGroup(successor, joined.protocol, [])), 'mine')
    await context.other.heartbeat(successor)
    await refused(context.one.heartbeat(old), 'FENCED_INSTANCE_ID')
    const offsets = [{ topic, partition: 0, offset: 1, metadata: '' }]
    await refused(context.one.commitOffsets(old, offsets), 'FENCED_INSTANCE_ID')
    await context.other.commitOffsets(successor, offsets)
    assert.deepEqual(
      (await context.one.describeGroup(group)).members.map((m) => [m.memberId, m.groupInstanceId, m.metadata]),
      [[joined.memberId, groupInstanceId, subscription('the successor')]],
    )
  })

  test('a member that shows no life is out after its session', async () => {
    const group = unique('group')
    const sessionTimeoutMs = context.shortSessionMs
    const member = await joinAlone(context.one, group, { sessionTimeoutMs })
    for (;;) {
      if ((await context.other.describeGroup(group)).members.length === 0) break
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    await refused(context.one.heartbeat(member), 'UNKNOWN_MEMBER_ID')
  })
}
