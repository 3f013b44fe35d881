import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SuiteContext } from './suite.ts'
import { joinAlone, newTopic, outsider, Producer, refused, unique } from './support.ts'

export function offsetTests(context: SuiteContext): void {
  test('committed offsets come back with their metadata; where there is none, -1', async () => {
    const topic = await newTopic(context.one, 2)
    const group = unique('group')
    const partitions = [
      { topic, partition: 0 },
      { topic, partition: 1 },
    ]
    assert.deepEqual(
      (await context.one.committedOffsets(group, partitions, true)).map((o) => [o.partition, o.offset]),
      [
        [0, -1],
        [1, -1],
      ],
    )
    await context.one.commitOffsets(outsider(group), [{ topic, partition: 1, offset: 7, metadata: 'tag' }])
    assert.deepEqual(
      (await context.other.committedOffsets(group, partitions, true)).map((o) => [o.partition, o.offset, o.metadata]),
      [
        [0, -1, ''],
        [1, 7, 'tag'],
      ],
    )
    assert.deepEqual(await context.other.committedOffsets(group, null, false), [
      { topic, partition: 1, offset: 7, metadata: 'tag' },
    ])
  })

  test('offsets of a transaction take effect with its commit', async () => {
    const topic = await newTopic(context.one)
    const group = unique('group')
    const producer = await Producer.start(context.one, unique('tx'))
    const member = await joinAlone(context.one, group)
    const committed = async (): Promise<unknown> =>
      (await context.other.committedOffsets(group, [{ topic, partition: 0 }], false)).map((o) => [o.offset, o.metadata])
    await producer.sendOffsets(member, [{ topic, partition: 0, offset: 5, metadata: 'five' }])
    assert.deepEqual(await committed(), [[-1, '']])
    await producer.end(true)
    assert.deepEqual((await context.other.committedOffsets(group, [{ topic, partition: 0 }], true))[0]?.offset, 5)
    assert.deepEqual(await committed(), [[5, 'five']])
    await producer.sendOffsets(member, [{ topic, partition: 0, offset: 9, metadata: 'nine' }])
    await producer.end(false)
    assert.equal((await context.other.committedOffsets(group, [{ topic, partition: 0 }], true))[0]?.offset, 5)
  })

  test('who asks for stable offsets waits for the end of the transaction that holds them', async () => {
    const topic = await newTopic(context.one)
    const group = unique('group')
    const producer = await Producer.start(context.one, unique('tx'))
    const member = await joinAlone(context.one, group)
    await producer.sendOffsets(member, [{ topic, partition: 0, offset: 5, metadata: '' }])
    let answered = false
    const asking = context.other.committedOffsets(group, [{ topic, partition: 0 }], true).then((offsets) => {
      answered = true
      return offsets
    })
    await context.one.heartbeat(member)
    assert.equal(answered, false)
    await producer.end(true)
    assert.equal((await asking)[0]?.offset, 5)
  })

  test('the transaction commits offsets only for a member of the present generation', async () => {
    const topic = await newTopic(context.one)
    const group = unique('group')
    const producer = await Producer.start(context.one, unique('tx'))
    const member = await joinAlone(context.one, group)
    const offsets = [{ topic, partition: 0, offset: 5, metadata: '' }]
    await refused(
      producer.sendOffsets({ ...member, generationId: member.generationId + 1 }, offsets),
      'ILLEGAL_GENERATION',
    )
    await refused(producer.sendOffsets({ ...member, memberId: 'nobody' }, offsets), 'UNKNOWN_MEMBER_ID')
  })

  test('only members commit the offsets of a group that has some', async () => {
    const topic = await newTopic(context.one)
    const group = unique('group')
    const member = await joinAlone(context.one, group)
    const offsets = [{ topic, partition: 0, offset: 1, metadata: '' }]
    await refused(context.one.commitOffsets(outsider(group), offsets), 'UNKNOWN_MEMBER_ID')
    await refused(context.one.commitOffsets({ ...member, generationId: 99 }, offsets), 'ILLEGAL_GENERATION')
    await context.one.commitOffsets(member, offsets)
    await context.one.leaveGroup(member)
    await context.one.commitOffsets(outsider(group), [{ topic, partition: 0, offset: 2, metadata: '' }])
    assert.equal((await context.one.committedOffsets(group, [{ topic, partition: 0 }], true))[0]?.offset, 2)
  })
}
