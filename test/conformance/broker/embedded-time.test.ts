/** What time does to the embedded broker; the clock moves only when it is told to. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { directCluster } from './embedded-support.ts'
import { joinAlone, joinRequest, memberOf, newTopic, Producer, refused, refusedAs, text, valuesOf } from './support.ts'

describe('time in the embedded broker', () => {
  test('nothing is due while nothing waits', () => {
    assert.equal(directCluster().cluster.nextDeadline(), Number.POSITIVE_INFINITY)
  })

  test('a fetch waits exactly as long as it was allowed to', async () => {
    const { client, cluster, clock } = directCluster()
    const topic = await newTopic(client)
    let answered = false
    const partitions = [{ topic, partition: 0, offset: 0, maxBytes: 1000 }]
    const fetching = client
      .fetch({ partitions, maxWaitMs: 500, maxBytes: 1000, isolation: 'read_committed' })
      .then(() => {
        answered = true
      })
    assert.equal(cluster.nextDeadline() - clock.monotonic(), 500)
    clock.advance(499)
    cluster.tick()
    await setImmediate()
    assert.equal(answered, false)
    clock.advance(1)
    cluster.tick()
    await fetching
    assert.equal(cluster.nextDeadline(), Number.POSITIVE_INFINITY)
  })

  test('a transaction that is open for too long is aborted, and its producer learns of it', async () => {
    const { client, cluster, clock } = directCluster()
    const topic = await newTopic(client)
    const producer = await Producer.start(client, 'tx')
    await producer.send(topic, ['a'])
    clock.advance(59_999)
    cluster.tick()
    assert.deepEqual(await client.listOffsets([{ topic, partition: 0 }], 'stable'), [
      { topic, partition: 0, offset: 0 },
    ])
    clock.advance(1)
    cluster.tick()
    assert.deepEqual(await valuesOf(client, topic), [])
    assert.equal((await client.listOffsets([{ topic, partition: 0 }], 'stable'))[0]?.offset, 2)
    await refusedAs(producer.send(topic, ['late']), 'epoch-lost')
    await refused(client.endTransaction('tx', producer.identity, true), 'INVALID_TXN_STATE')
    const again = await Producer.start(client, 'tx', producer.identity)
    await again.send(topic, ['b'])
    await again.end(true)
    assert.deepEqual(await valuesOf(client, topic), ['b'])
  })

  test('a change of the wall clock ends nothing', async () => {
    const { client, cluster, clock } = directCluster()
    const topic = await newTopic(client)
    const producer = await Producer.start(client, 'tx')
    await producer.send(topic, ['a'])
    const member = await joinAlone(client, 'g')
    clock.jump(3_600_000)
    cluster.tick()
    await client.heartbeat(member)
    await producer.end(true)
    assert.deepEqual(await valuesOf(client, topic), ['a'])
  })

  test('a session is prolonged by heartbeats and commits, and ends without them', async () => {
    const { client, cluster, clock } = directCluster()
    const topic = await newTopic(client)
    const member = await joinAlone(client, 'g', { sessionTimeoutMs: 1000 })
    for (let i = 0; i < 5; i++) {
      clock.advance(900)
      cluster.tick()
      if (i % 2 === 0) await client.heartbeat(member)
      else await client.commitOffsets(member, [{ topic, partition: 0, offset: i, metadata: '' }])
    }
    clock.advance(1000)
    cluster.tick()
    await refused(client.heartbeat(member), 'UNKNOWN_MEMBER_ID')
    assert.deepEqual(await client.describeGroup('g'), { state: 'Empty', members: [] })
  })

  test('a member that does not come to a rebalance in time is left out of it', async () => {
    const { client, cluster, clock } = directCluster()
    const slow = await joinAlone(client, 'g', { rebalanceTimeoutMs: 5000, sessionTimeoutMs: 60_000 })
    const joining = client.joinGroup(joinRequest('g', { rebalanceTimeoutMs: 3000 }))
    await refused(client.heartbeat(slow), 'REBALANCE_IN_PROGRESS')
    clock.advance(4999)
    cluster.tick()
    assert.equal((await client.describeGroup('g')).state, 'PreparingRebalance')
    clock.advance(1)
    cluster.tick()
    const joined = await joining
    assert.equal(joined.leaderId, joined.memberId)
    assert.equal(joined.members.length, 1)
    await refused(client.heartbeat(slow), 'UNKNOWN_MEMBER_ID')
  })

  test('a static member that is late keeps its place until its session ends', async () => {
    const { client, cluster, clock } = directCluster()
    const session = { rebalanceTimeoutMs: 1000, sessionTimeoutMs: 10_000 }
    await joinAlone(client, 'g', { groupInstanceId: 'static', ...session })
    const joining = client.joinGroup(joinRequest('g', { rebalanceTimeoutMs: 1000, sessionTimeoutMs: 60_000 }))
    clock.advance(1000)
    cluster.tick()
    const joined = await joining
    assert.deepEqual(joined.members.map((m) => m.groupInstanceId).sort(), ['static', null].sort())
    const member = memberOf('g', joined)
    await client.syncGroup(member, joined.protocol, [{ memberId: joined.memberId, assignment: text('x') }])
    clock.advance(9999)
    cluster.tick()
    await client.heartbeat(member)
    clock.advance(1)
    cluster.tick()
    await refused(client.heartbeat(member), 'REBALANCE_IN_PROGRESS')
  })

  test('members whose leader does not assign in time rebalance without it', async () => {
    const { client, cluster, clock } = directCluster()
    const session = { rebalanceTimeoutMs: 1000, sessionTimeoutMs: 60_000 }
    const first = await joinAlone(client, 'g', session)
    const joining = client.joinGroup(joinRequest('g', session))
    const leader = await client.joinGroup(joinRequest('g', { memberId: first.memberId, ...session }))
    const follower = await joining
    assert.equal(follower.leaderId, leader.memberId)
    const syncing = client.syncGroup(memberOf('g', follower), follower.protocol, [])
    clock.advance(1000)
    cluster.tick()
    await refused(syncing, 'REBALANCE_IN_PROGRESS')
    const again = await client.joinGroup(joinRequest('g', { memberId: follower.memberId, ...session }))
    assert.equal(again.leaderId, follower.memberId)
    await refused(client.heartbeat(memberOf('g', leader)), 'UNKNOWN_MEMBER_ID')
  })

  test('a group that was empty waits for more members where it is told to', async () => {
    const { client, cluster, clock } = directCluster({ initialRebalanceDelayMs: 300 })
    const joining = [client.joinGroup(joinRequest('g')), client.joinGroup(joinRequest('g'))]
    clock.advance(300)
    cluster.tick()
    const joined = await Promise.all(joining)
    assert.deepEqual(
      joined.map((j) => j.generationId),
      [1, 1],
    )
  })

  test('the same calls at the same times give the same ids', async () => {
    const run = async (): Promise<unknown> => {
      const { client } = directCluster()
      await client.createTopics([{ topic: 'a', partitions: 1 }])
      return [await client.topics(null), await joinAlone(client, 'g'), await client.initProducer('tx', 1000)]
    }
    assert.deepEqual(await run(), await run())
  })
})
