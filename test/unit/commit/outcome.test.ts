import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '../../../src/base/clock.ts'
import { EngineError } from '../../../src/base/errors.ts'
import { BrokerError, type BrokerPort } from '../../../src/broker/port.ts'
import { type OutcomeParts, outcomeOf } from '../../../src/engine/commit/outcome.ts'
import { encodeTag } from '../../../src/engine/commit/tag.ts'

const partition = { topic: 'in', partition: 0 }
const mine = { tokenEpoch: 2, seq: 7 }
const last = { tokenEpoch: 2, seq: 6 }

/** What is said of the commit where this one is the group's newest. */
function outcome(
  newest: { tokenEpoch: number; seq: number },
  settings: object,
  offset = 1,
): Promise<'committed' | 'aborted'> {
  const metadata = encodeTag({ ...newest, maxTimestamp: 0, watermark: 0 })
  const broker = { committedOffsets: async () => [{ ...partition, offset: 1, metadata }] } as unknown as BrokerPort
  const parts = {
    broker,
    producer: { retake: async () => undefined },
    clock: new VirtualClock(0),
    settings,
    groupId: 'app',
    place,
    pause: async () => undefined,
  }
  return outcomeOf(
    parts as unknown as OutcomeParts,
    [{ ...partition, offset }],
    () => mine,
    () => last,
  )
}

/** Of nobody who is a member. */
const place = { member: () => ({ memberId: '' }), isInGroup: false, mayHaveReplacedItself: false }

const inProcess = { split: 'in-process', resolveTimeoutMs: 1000 }
const shared = { split: 'repartition-topics', resolveTimeoutMs: 1000 }

test('a commit took effect where its tag is there, and none did where there is an older one', async () => {
  for (const settings of [inProcess, shared]) {
    assert.equal(await outcome(mine, settings), 'committed')
    assert.equal(await outcome(last, settings), 'aborted')
  }
})

test('the number of a commit that another process has come to as well is told apart by what it committed', async () => {
  await assert.rejects(outcome(mine, shared, 40), { code: 'TRANSACTION_ABORTED' })
  await assert.rejects(outcome(mine, inProcess, 40), { code: 'FENCED' })
})

test('a newer tag is that of another process: a stranger, unless processes share the partitions', async () => {
  const newer = { tokenEpoch: 3, seq: 1 }
  const isStranger = (error: unknown): boolean => EngineError.is(error) && error.code === 'FENCED'
  const hasTakenOver = (error: unknown): boolean =>
    EngineError.is(error) && error.code === 'TRANSACTION_ABORTED' && error.recovery === 'restart-engine'
  await assert.rejects(outcome(newer, inProcess), isStranger)
  await assert.rejects(outcome(newer, { ...shared, ha: {} }), isStranger)
  await assert.rejects(outcome(newer, shared), hasTakenOver)
})

test('a broker whose connection is closed is asked again after a pause: others have their turn meanwhile', async () => {
  let asked = 0
  let pauses = 0
  const refused = new BrokerError('UNREACHABLE', 'the connection is closed', 'unreachable')
  const metadata = encodeTag({ ...mine, maxTimestamp: 0, watermark: 0 })
  const parts = {
    broker: { committedOffsets: async () => [{ ...partition, offset: 1, metadata }] },
    producer: {
      retake: async () => {
        if (++asked < 4) throw refused
      },
    },
    clock: new VirtualClock(0),
    settings: inProcess,
    groupId: 'app',
    place,
    pause: async () => {
      pauses++
    },
  }
  const found = outcomeOf(
    parts as unknown as OutcomeParts,
    [{ ...partition, offset: 1 }],
    () => mine,
    () => last,
  )
  assert.equal(await found, 'committed')
  assert.deepEqual([asked, pauses], [4, 3])
})

test('a broker that answers, and not what was asked, is asked again for as long as a commit may be in doubt', async () => {
  const clock = new VirtualClock(0)
  let asked = 0
  const refused = new BrokerError('CONCURRENT_TRANSACTIONS', 'the transaction ends still', 'retriable')
  const parts = {
    broker: { committedOffsets: async () => assert.fail('it is not known whose the identity is') },
    producer: {
      retake: async () => {
        if (++asked > 100) assert.fail('it is asked for ever')
        throw refused
      },
    },
    clock,
    settings: inProcess,
    groupId: 'app',
    place,
    pause: async () => clock.advance(100),
  }
  const found = outcomeOf(
    parts as unknown as OutcomeParts,
    [{ ...partition, offset: 1 }],
    () => mine,
    () => last,
  )
  await assert.rejects(found, refused)
  assert.equal(asked, 12)
})
