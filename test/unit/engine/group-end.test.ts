/** Whether a group has come to the end of its input, asked by a process that has no part of it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BrokerPort, OffsetSpec } from '../../../src/broker/port.ts'
import { incarnationOf } from '../../../src/engine/commit/state-marks.ts'
import { encodeTag } from '../../../src/engine/commit/tag.ts'
import type { ResolvedTopics } from '../../../src/engine/group/topics.ts'
import { isGroupAtEnd } from '../../../src/engine/input/repartition/group-end.ts'
import type { EngineSettings } from '../../../src/engine/settings.ts'

const settings = {
  applicationId: 'app',
  split: 'in-process',
  plan: { sources: [{ index: 0, kind: 'topics' }] },
} as unknown as EngineSettings
const topics = {
  bySource: [['in']],
  topics: new Map([['in', { partitions: 1, topicId: 'now' }]]),
} as unknown as ResolvedTopics

/** A topic whose records lie from `begin` to `end`, of which the group has committed so much; -1: nothing. */
function broker(begin: number, end: number, committed: number, of?: string): BrokerPort {
  const at = { topic: 'in', partition: 0 }
  const tag = { tokenEpoch: 1, seq: 1, maxTimestamp: 5, watermark: 5 }
  return {
    committedOffsets: async () => [{ ...at, offset: committed, metadata: of ? encodeTag({ ...tag, of }) : '' }],
    listOffsets: async (_: unknown, spec: OffsetSpec) => [{ ...at, offset: spec === 'earliest' ? begin : end }],
  } as unknown as BrokerPort
}

const isAtEnd = (of: BrokerPort, partitionsHere = 0): Promise<boolean> =>
  isGroupAtEnd({ settings, broker: of }, topics, partitionsHere)

test('one that has just lost its place is not done while records are left that nobody has committed', async () => {
  assert.equal(await isAtEnd(broker(0, 10, -1)), false)
  assert.equal(await isAtEnd(broker(0, 10, 4)), false)
  assert.equal(await isAtEnd(broker(0, 10, 10)), true)
})

test('what was committed of another topic of the name says nothing of this one', async () => {
  assert.equal(await isAtEnd(broker(0, 10, 10, incarnationOf('now'))), true)
  assert.equal(await isAtEnd(broker(0, 10, 10, incarnationOf('before'))), false)
})

test('nothing has to be committed of a topic that is empty, or whose records are past their time', async () => {
  assert.equal(await isAtEnd(broker(0, 0, -1)), true)
  assert.equal(await isAtEnd(broker(10, 10, -1)), true)
  assert.equal(await isAtEnd(broker(10, 12, -1)), false)
})

test('one that has partitions answers for them alone', async () => {
  assert.equal(await isAtEnd(broker(0, 10, 4), 1), true)
})
