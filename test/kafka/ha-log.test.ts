/** What judges hot standby, judged itself: it takes a history that is right, and finds what must not be in one. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { encodeTag } from '../../src/engine/commit/tag.ts'
import { TestProducer, transactionsSettled } from '../support/broker-io.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { commitChain, longestGapMs, outputLog } from './verifier/ha-log.ts'

const kafka = await kafkaForTests()
const skip = 'skip' in kafka ? kafka.skip : false

describe('the history of a hot-standby group', { skip }, () => {
  let port: BrokerPort
  before(() => {
    port = connectKafka({ bootstrapServers: ['skip' in kafka ? '' : kafka.bootstrap], clientId: 'ha-log-test' })
  })
  after(async () => {
    await port.close()
    if (!('skip' in kafka)) await kafka.stop()
  })

  async function newTopic(): Promise<string> {
    const topic = `h-${randomUUID()}`
    await port.createTopics([{ topic, partitions: 1, config: { 'message.timestamp.type': 'LogAppendTime' } }])
    return topic
  }

  /** What is to be committed, in one transaction or in one each; `abort` ends the last one so. */
  async function committed(
    commits: ReadonlyArray<readonly [epoch: number, seq: number, offset: number]>,
    { abort = false, together = false } = {},
  ) {
    const topic = await newTopic()
    const groupId = `g-${topic}`
    const member = { groupId, memberId: '', generationId: -1, groupInstanceId: null }
    const producer = await TestProducer.open(port, `x-${topic}`)
    for (const [i, [tokenEpoch, seq, offset]] of commits.entries()) {
      const metadata = encodeTag({ tokenEpoch, seq, maxTimestamp: 1, watermark: 1 })
      const place = { topic, partition: 0, offset, metadata }
      await port.commitOffsetsInTransaction(`x-${topic}`, producer.identity, member, [place])
      const isLast = i === commits.length - 1
      if (isLast || !together) await producer.end(!(abort && isLast))
    }
    await port.committedOffsets(groupId, null, true)
    return await commitChain(port, groupId)
  }

  test('a chain of commits over several actives is taken', async () => {
    const chain = await committed([
      [1, 0, 5],
      [1, 1, 9],
      [2, 0, 9],
      [4, 0, 12],
    ])
    assert.deepEqual(chain, { commits: 4, tokenEpochs: [1, 2, 4], errors: [] })
  })

  test('a commit of an earlier active behind one of a later is found', async () => {
    const { errors } = await committed([
      [1, 0, 5],
      [2, 0, 9],
      [1, 1, 12],
    ])
    assert.match(errors.join('\n'), /at 1\.1 follows 2\.0/)
  })

  test('a commit twice, and an offset that goes back, are found', async () => {
    const { errors } = await committed([
      [1, 0, 5],
      [1, 1, 9],
      [1, 1, 9],
      [1, 2, 7],
    ])
    assert.match(errors.join('\n'), /at 1\.1 follows 1\.1/)
    assert.match(errors.join('\n'), /at 1\.2 goes back from 9 to 7/)
  })

  test('offsets that were sent again in their transaction, because an answer was lost, are one commit', async () => {
    const again = [
      [1, 7, 5],
      [1, 7, 5],
    ] as const
    const chain = await committed(again, { together: true })
    assert.deepEqual(chain, { commits: 1, tokenEpochs: [1], errors: [] })
  })

  test('two offsets of one place in a transaction are found', async () => {
    const others = [
      [1, 7, 5],
      [1, 7, 6],
    ] as const
    const { errors } = await committed(others, { together: true })
    assert.match(errors.join('\n'), /at 1\.7 follows 1\.7/)
  })

  test('what was aborted is no part of the chain', async () => {
    const chain = await committed(
      [
        [1, 0, 5],
        [1, 1, 9],
        [1, 0, 1],
      ],
      { abort: true },
    )
    assert.deepEqual(chain, { commits: 2, tokenEpochs: [1], errors: [] })
  })

  test('results of one producer after the other are taken, and the time between them is told', async () => {
    const topic = await newTopic()
    for (const pauseMs of [0, 700]) {
      await sleep(pauseMs)
      const producer = await TestProducer.open(port, `x-${topic}`)
      await producer.write(topic, 0, [{ value: 'a' }])
      await producer.end(true)
      await producer.write(topic, 0, [{ value: 'void' }])
      await producer.end(false)
    }
    await transactionsSettled(port, topic, 0)
    const log = await outputLog(port, topic, 0)
    assert.deepEqual(log.errors, [])
    assert.equal(log.visibleAtMs.length, 2, 'what was aborted was never seen')
    const now = Date.now()
    assert.ok(longestGapMs([log], now - 60_000, now) >= 700)
    assert.equal(longestGapMs([log], now + 60_000, now + 61_000), 0)
  })

  test('results of two producers in turn are found', async () => {
    const topic = await newTopic()
    const one = await TestProducer.open(port, `one-${topic}`)
    const other = await TestProducer.open(port, `other-${topic}`)
    for (const producer of [one, other, one, other]) {
      await producer.write(topic, 0, [{ value: 'a' }])
      await producer.end(true)
    }
    await transactionsSettled(port, topic, 0)
    const { errors } = await outputLog(port, topic, 0)
    assert.equal(errors.length, 1)
    assert.match(errors[0] as string, /is of .* behind /)
  })
})
