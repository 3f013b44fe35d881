/** What a start makes of offsets that are of another topic of the name. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BrokerPort, OffsetSpec } from '../../../src/broker/port.ts'
import type { TopicPartition } from '../../../src/base/ids.ts'
import { incarnationOf } from '../../../src/engine/commit/state-marks.ts'
import { encodeTag } from '../../../src/engine/commit/tag.ts'
import { groupPosition } from '../../../src/engine/group/assignment.ts'
import { saidOf } from '../../../src/engine/group/made-anew.ts'
import type { ResolvedTopics } from '../../../src/engine/group/topics.ts'
import type { EngineSettings } from '../../../src/engine/settings.ts'

const settings = {
  applicationId: 'app',
  offsetsReset: 'earliest',
  plan: { boundaries: [{ topic: 'mid-repartition' }] },
} as unknown as EngineSettings

/** Committed at 7 of the topic with this identity; undefined: by a version that does not tell it. */
async function position(topic: string, committedOf: string | undefined, more: object = {}) {
  const topics = new Map([[topic, { topic, topicId: 'now', partitions: 1 }]])
  const of = committedOf === undefined ? {} : { of: incarnationOf(committedOf) }
  const tag = { tokenEpoch: 4, seq: 5, maxTimestamp: 6000, watermark: 5000, held: '1:2', ...of }
  const broker = {
    committedOffsets: async (_: string, asked: readonly TopicPartition[]) =>
      asked.map((each) => ({ ...each, offset: 7, metadata: encodeTag({ ...tag, ...more }) })),
    listOffsets: async (asked: readonly TopicPartition[], at: OffsetSpec) =>
      asked.map((each) => ({ ...each, offset: at === 'earliest' ? 2 : 9 })),
  } as unknown as BrokerPort
  return groupPosition(settings, broker, [{ topic, partition: 0 }], { topics } as Pick<ResolvedTopics, 'topics'>)
}

test('offsets of the topic that is there are where it goes on, and so are those that do not say which topic they are of', async () => {
  for (const committedOf of ['now', undefined]) {
    const { partitions, madeAnew, watermark } = await position('in', committedOf)
    const [at] = partitions
    assert.deepEqual([at?.offset, at?.committed, at?.maxTimestamp, at?.held], [7, true, 6000, '1:2'])
    assert.deepEqual([madeAnew, watermark, at?.topicId], [[], 5000, 'now'])
  }
})

test('of another topic of the name nothing holds but which commit it was: commits are counted on', async () => {
  const kept = { end: 9, timestamp: 8, offset: 8 }
  const { partitions, madeAnew, watermark, newestTag } = await position('in', 'before', { kept })
  const [at] = partitions
  assert.deepEqual([at?.offset, at?.committed, at?.kept, at?.held], [2, false, undefined, undefined])
  for (const time of [at?.maxTimestamp, at?.watermark, watermark]) assert.equal(time, Number.NEGATIVE_INFINITY)
  assert.deepEqual([newestTag?.tokenEpoch, newestTag?.seq], [4, 5])
  assert.deepEqual(saidOf(settings, { madeAnew }), [
    'the topic in was deleted and made again, and the offsets of the group are of the old one (partition 0: 7): ' +
      'the new one is read from its beginning',
  ])
})

test('what lay in a topic between sub-topologies is told to be lost with it', async () => {
  const { partitions, madeAnew } = await position('app-mid-repartition', 'before')
  assert.equal(partitions[0]?.offset, 2)
  assert.match(saidOf(settings, { madeAnew })[0] ?? '', /; what lay in the old one and was not read is lost$/)
})
