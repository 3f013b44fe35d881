/** What a start makes of offsets that are of another topic of the name. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { BrokerPort, OffsetSpec } from '../../../src/broker/port.ts'
import type { TopicPartition } from '../../../src/base/ids.ts'
import { incarnationOf } from '../../../src/engine/commit/state-marks.ts'
import { encodeTag } from '../../../src/engine/commit/tag.ts'
import { groupPosition } from '../../../src/engine/group/assignment.ts'
import { lostBetween } from '../../../src/engine/group/lost-between.ts'
import { saidOf } from '../../../src/engine/group/made-anew.ts'
import { encodeRead } from '../../../src/engine/commit/read-topics.ts'
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
  return groupPosition(settings, broker, [{ topic, partition: 0 }], { topics, bySource: [] } as Pick<
    ResolvedTopics,
    'topics' | 'bySource'
  >)
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

const mid = { topic: 'app-mid-repartition', topicId: 'now', partitions: 1 }
const ofIn = { topic: 'in', topicId: 'in', partitions: 1 }

const tagOfMid = { tokenEpoch: 4, seq: 6, maxTimestamp: 1, watermark: 1 }

/** What is noted beside the offset of `in`, by a process that had nothing of the other topic. */
const noted = (topicId: string, seq = 5): string =>
  encodeTag({
    ...{ tokenEpoch: 4, seq, maxTimestamp: 6000, watermark: 5000, of: incarnationOf('in') },
    read: encodeRead([{ topic: 'in', topicId: 'in', offset: 7 }], [{ ...mid, topicId }]),
  })

describe('a process that has partitions of a topic between sub-topologies alone', () => {
  async function asked(metadata: string, has: number) {
    let asks = 0
    const broker = {
      committedOffsets: async (_: string, of: readonly TopicPartition[]) => {
        asks++
        return of.map(({ topic, partition }) =>
          topic === 'in'
            ? { topic, partition, offset: 7, metadata }
            : {
                topic,
                partition,
                offset: has,
                metadata: has < 0 ? '' : encodeTag({ ...tagOfMid, of: incarnationOf('now') }),
              },
        )
      },
      listOffsets: async (of: readonly TopicPartition[]) => of.map((each) => ({ ...each, offset: 0 })),
    } as unknown as BrokerPort
    const plan = {
      boundaries: [{ topic: 'mid-repartition' }],
      sources: [
        { index: 0, kind: 'topics' },
        { index: 1, kind: 'boundary' },
      ],
    }
    const resolved = { topics: new Map([ofIn, mid].map((info) => [info.topic, info])), bySource: [['in'], [mid.topic]] }
    const shared = { ...settings, split: 'repartition-topics', plan } as unknown as EngineSettings
    const { madeAnew, lost } = await groupPosition(shared, broker, [{ topic: mid.topic, partition: 0 }], resolved)
    return { asks, madeAnew: madeAnew.map(({ topic }) => topic), lost }
  }

  test('asks what the others have noted, where the group has no offset of it', async () => {
    assert.deepEqual(await asked(noted('before'), -1), { asks: 2, madeAnew: [mid.topic], lost: [] })
    assert.deepEqual(await asked(noted('now'), -1), { asks: 2, madeAnew: [], lost: [] })
    assert.deepEqual(await asked('', -1), { asks: 2, madeAnew: [], lost: [] })
  })

  test('asks nobody where it has one', async () => {
    assert.deepEqual(await asked(noted('now'), 3), { asks: 1, madeAnew: [], lost: [] })
  })
})

describe('a topic between sub-topologies', () => {
  const resolved = { topics: new Map([[mid.topic, mid]]), boundaries: [mid] }
  const strict = { ...settings, lostChangelogs: 'refuse' } as EngineSettings
  const beside = (metadata: string) => ({ topic: 'in', partition: 0, offset: 7, metadata })
  const own = (of: string) => ({
    ...{ topic: mid.topic, partition: 0, offset: 3 },
    metadata: encodeTag({ ...tagOfMid, of: incarnationOf(of) }),
  })

  test('is known to be another one to those that read nothing of it', () => {
    for (const committed of [[beside(noted('before'))], [own('before')]])
      assert.throws(() => lostBetween(strict, resolved, committed), { code: 'OFFSETS_MISSING' })
    const accepting = { ...strict, lostChangelogs: 'accept' } as EngineSettings
    assert.deepEqual(lostBetween(accepting, resolved, [beside(noted('before'))]), [mid.topic])
  })

  test('is the right one once somebody has committed of it, or noted it since', () => {
    for (const committed of [
      [],
      [beside(noted('now'))],
      [beside(noted('before')), own('now')],
      [beside(noted('before', 5)), { ...beside(noted('now', 6)), partition: 1 }],
    ])
      assert.deepEqual(lostBetween(strict, resolved, committed), [])
  })
})
