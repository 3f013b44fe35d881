import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SuiteContext } from './suite.ts'
import { newTopic, refused, unique } from './support.ts'

export function topicTests(context: SuiteContext): void {
  test('topics are described with their partitions; those that do not exist are left out', async () => {
    const topic = await newTopic(context.one, 3)
    const [info, ...more] = await context.other.topics([topic, unique('nowhere')])
    assert.equal(more.length, 0)
    assert.equal(info?.topic, topic)
    assert.equal(info?.partitions, 3)
    assert.ok((await context.other.topics(null)).some((other) => other.topicId === info?.topicId))
  })

  test('a topic that exists already is no error, and stays as it is', async () => {
    const topic = await newTopic(context.one, 2)
    await context.other.createTopics([{ topic, partitions: 5 }])
    assert.equal((await context.one.topics([topic]))[0]?.partitions, 2)
  })

  test('a topic without a partition count gets the default of the broker', async () => {
    const topic = unique('default')
    await context.one.createTopics([{ topic, partitions: -1 }])
    assert.ok(((await context.one.topics([topic]))[0]?.partitions ?? 0) >= 1)
  })

  test('the settings of a topic can be read', async () => {
    const topic = await newTopic(context.one, 1, { 'cleanup.policy': 'compact', 'max.message.bytes': '2000' })
    const config = await context.one.topicConfig(topic)
    assert.equal(config['cleanup.policy'], 'compact')
    assert.equal(config['max.message.bytes'], '2000')
    assert.equal(config['message.timestamp.type'], 'CreateTime')
  })

  test('a name that no topic may have is refused', async () => {
    await refused(context.one.createTopics([{ topic: 'no topic', partitions: 1 }]), 'INVALID_TOPIC_EXCEPTION')
  })

  test('a deleted topic is gone, and another one of the name has another identity', async () => {
    const topic = await newTopic(context.one)
    const [before] = await context.one.topics([topic])
    await context.one.deleteTopics([topic])
    while ((await context.one.topics([topic])).length > 0) await new Promise((resolve) => setTimeout(resolve, 50))
    await context.one.createTopics([{ topic, partitions: 1 }])
    const [behind] = await context.one.topics([topic])
    assert.ok(behind !== undefined)
    assert.notEqual(behind.topicId, before?.topicId)
  })

  test('who means a topic that is no more is not given the records of another one of its name', async () => {
    const topic = await newTopic(context.one)
    const [before] = await context.one.topics([topic])
    assert.ok(before !== undefined)
    await context.one.deleteTopics([topic])
    while ((await context.one.topics([topic])).length > 0) await new Promise((resolve) => setTimeout(resolve, 50))
    await context.one.createTopics([{ topic, partitions: 1 }])
    const [now] = await context.one.topics([topic])
    assert.ok(now !== undefined)
    const read = async (topicId: string) => {
      const partitions = [{ topic, partition: 0, topicId, offset: 0, maxBytes: 1000 }]
      return (await context.one.fetch({ partitions, maxWaitMs: 100, maxBytes: 1000, isolation: 'read_committed' }))[0]
    }
    assert.equal((await read(before.topicId))?.error, 'UNKNOWN_TOPIC_ID')
    assert.equal((await read(now.topicId))?.error, undefined)
    assert.equal((await read(before.topicId))?.error, 'UNKNOWN_TOPIC_ID')
  })
}
