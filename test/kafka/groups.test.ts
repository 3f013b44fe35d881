/** Consumer groups by the classic protocol on a real Kafka. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { BrokerError, type BrokerPort, type GroupMember, type JoinedGroup } from '../../src/broker/port.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { eventually } from '../support/millrace.ts'

const kafka = await kafkaForTests()
const skip = 'skip' in kafka ? kafka.skip : false

/** Kafka parses what members of a consumer group say of themselves: version 0, no topics, no user data. */
const subscription = Buffer.from([0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff])

const isCode = (code: string) => (error: unknown) => error instanceof BrokerError && error.code === code

describe('groups on Kafka', { skip }, () => {
  let port: BrokerPort
  before(() => {
    port = connectKafka({ bootstrapServers: 'skip' in kafka ? [] : [kafka.bootstrap], clientId: 'group-test' })
  })
  after(async () => {
    await port.close()
    if (!('skip' in kafka)) await kafka.stop()
  })

  function join(groupId: string, memberId = '', groupInstanceId: string | null = null): Promise<JoinedGroup> {
    return port.joinGroup({
      groupId,
      memberId,
      groupInstanceId,
      sessionTimeoutMs: 10_000,
      rebalanceTimeoutMs: 10_000,
      protocols: [{ name: 'test', metadata: subscription }],
    })
  }

  function memberOf(groupId: string, joined: JoinedGroup, groupInstanceId: string | null = null): GroupMember {
    return { groupId, memberId: joined.memberId, generationId: joined.generationId, groupInstanceId }
  }

  function assignmentsOf(joined: JoinedGroup): Array<{ memberId: string; assignment: Uint8Array }> {
    return joined.members.map(({ memberId }) => ({ memberId, assignment: Buffer.from(`for ${memberId}`) }))
  }

  test('two members over one client join, are assigned by the leader, and see a third one come', async () => {
    const groupId = `g-${randomUUID()}`
    const first = await join(groupId)
    assert.equal(first.leaderId, first.memberId)
    await port.syncGroup(memberOf(groupId, first), first.protocol, assignmentsOf(first))
    assert.equal((await port.describeGroup(groupId)).state, 'Stable')

    const secondJoining = join(groupId)
    await eventually('the first is told to join again', () =>
      port.heartbeat(memberOf(groupId, first)).then(
        () => false,
        (error: unknown) => {
          assert.ok(isCode('REBALANCE_IN_PROGRESS')(error), String(error))
          return true
        },
      ),
    )
    const [again, second] = await Promise.all([join(groupId, first.memberId), secondJoining])
    assert.equal(again.generationId, second.generationId)
    assert.equal(again.members.length, 2)
    assert.equal(second.members.length, 0)
    const [mine, theirs] = await Promise.all([
      port.syncGroup(memberOf(groupId, again), again.protocol, assignmentsOf(again)),
      port.syncGroup(memberOf(groupId, second), second.protocol, []),
    ])
    assert.equal(Buffer.from(mine).toString(), `for ${again.memberId}`)
    assert.equal(Buffer.from(theirs).toString(), `for ${second.memberId}`)
    await Promise.all([port.heartbeat(memberOf(groupId, again)), port.heartbeat(memberOf(groupId, second))])
    const described = await port.describeGroup(groupId)
    assert.deepEqual(
      described.members.map((member) => member.clientId),
      ['group-test', 'group-test'],
    )
    await assert.rejects(port.heartbeat(memberOf(groupId, first)), isCode('ILLEGAL_GENERATION'))
    await port.leaveGroup(memberOf(groupId, second))
    await assert.rejects(port.heartbeat(memberOf(groupId, again)), isCode('REBALANCE_IN_PROGRESS'))
    await port.leaveGroup(memberOf(groupId, again))
    assert.equal((await port.describeGroup(groupId)).state, 'Empty')
  })

  test('a static member that returns takes its place over at once, and the older one is fenced', async () => {
    const groupId = `g-${randomUUID()}`
    const first = await join(groupId, '', 'place-1')
    await port.syncGroup(memberOf(groupId, first, 'place-1'), first.protocol, assignmentsOf(first))
    const second = await join(groupId, '', 'place-1')
    assert.equal(second.generationId, first.generationId)
    assert.equal(second.skipAssignment, true)
    await assert.rejects(port.heartbeat(memberOf(groupId, first, 'place-1')), isCode('FENCED_INSTANCE_ID'))
    const kept = await port.syncGroup(memberOf(groupId, second, 'place-1'), second.protocol, [])
    assert.equal(Buffer.from(kept).toString(), `for ${first.memberId}`)
    await port.heartbeat(memberOf(groupId, second, 'place-1'))
  })

  test('offsets are taken from members of the generation only', async () => {
    const groupId = `g-${randomUUID()}`
    const topic = `t-${randomUUID()}`
    await port.createTopics([{ topic, partitions: 2 }])
    const joined = await join(groupId)
    const member = memberOf(groupId, joined)
    await port.syncGroup(member, joined.protocol, assignmentsOf(joined))
    await port.commitOffsets(member, [{ topic, partition: 1, offset: 7, metadata: 'tag' }])
    await assert.rejects(
      port.commitOffsets({ ...member, generationId: 99 }, [{ topic, partition: 1, offset: 8, metadata: '' }]),
      isCode('ILLEGAL_GENERATION'),
    )
    assert.deepEqual(await port.committedOffsets(groupId, null, true), [
      { topic, partition: 1, offset: 7, metadata: 'tag' },
    ])
    const identity = await port.initProducer(`x-${groupId}`, 60_000)
    await assert.rejects(
      port.commitOffsetsInTransaction(`x-${groupId}`, identity, { ...member, memberId: 'stranger' }, [
        { topic, partition: 1, offset: 8, metadata: '' },
      ]),
      isCode('UNKNOWN_MEMBER_ID'),
    )
    await port.endTransaction(`x-${groupId}`, identity, false)
  })

  test('a group that nobody ever used is described as dead', async () => {
    assert.deepEqual(await port.describeGroup(`g-${randomUUID()}`), { state: 'Dead', members: [] })
    assert.deepEqual(await port.committedOffsets(`g-${randomUUID()}`, null, true), [])
  })
})
