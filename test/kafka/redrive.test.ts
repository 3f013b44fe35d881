/** Dead letters on a real Kafka: found beside marks, and put back once, whatever step the process dies at. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { newest } from '../../src/runtime/data/newest.ts'
import { redrive } from '../../src/runtime/data/redrive.ts'
import { scan, spansOf } from '../../src/runtime/data/topic-scan.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { Producer } from '../../src/engine/commit/producer.ts'
import { dyingAt, redriveSteps } from '../support/dying-broker.ts'
import { kafkaForTests, type TestKafka } from '../support/kafka.ts'

const kafka = await kafkaForTests()
const skip = 'skip' in kafka ? kafka.skip : false
const count = 21
const t0 = 1_700_000_000_000

async function write(broker: BrokerPort, topic: string, records: RecordBatchBuilder): Promise<number> {
  const batches = [{ topic, partition: 0, records: records.finish() }]
  const [written] = await broker.produce({ transactionalId: null, batches })
  return written?.baseOffset ?? -1
}

describe('dead letters on Kafka', { skip }, () => {
  after(() => (kafka as TestKafka).stop())

  test('are found newest first, whatever was given up beside them', async (t) => {
    const { bootstrap } = kafka as TestKafka
    const broker = await connectKafka({ bootstrapServers: [bootstrap], clientId: 'newest', requestTimeoutMs: 30_000 })
    t.after(() => broker.close())
    const topic = `newest-${process.pid}`
    await broker.createTopics([{ topic, partitions: 3 }])
    const producer = new Producer(broker, topic, 60_000)
    await producer.init()
    const transaction = async (partition: number, times: readonly number[], commit: boolean): Promise<void> => {
      const builder = new RecordBatchBuilder()
      for (const time of times) builder.append(t0 + time, null, null, [])
      producer.send([{ topic, partition, count: builder.count, records: builder.finish() }], t0)
      await producer.flush()
      await producer.end(commit)
    }
    await transaction(0, [-1], true)
    for (let i = 0; i < 30; i++) {
      await transaction(2, [2 * i, 2 * i + 1], true)
      await transaction(i % 2 === 0 ? 2 : 0, [1000, 1001, 1002], false)
    }
    const spans = (await spansOf(broker, topic)) ?? []
    const found = async (most: number): Promise<[times: number[], more: boolean]> => {
      const { records, more } = await newest(broker, topic, spans, most)
      return [records.map(({ timestamp }) => timestamp - t0), more]
    }
    const all = [...Array.from({ length: 60 }, (_, i) => 59 - i), -1]
    assert.deepEqual(await found(100), [all, false])
    assert.deepEqual(await found(61), [all, false])
    assert.deepEqual(await found(60), [all.slice(0, 60), true])
    assert.deepEqual(await found(5), [all.slice(0, 5), true])
  })

  test('are put back once each, although the process dies at every step of it', async (t) => {
    const { bootstrap } = kafka as TestKafka
    const broker = await connectKafka({ bootstrapServers: [bootstrap], clientId: 'redrive', requestTimeoutMs: 30_000 })
    t.after(() => broker.close())
    const name = `redrive-${process.pid}`
    const [source, letters] = [`${name}-events`, `${name}-dead-letters`]
    await broker.createTopics([source, letters].map((topic) => ({ topic, partitions: 1 })))
    const events = new RecordBatchBuilder()
    for (let i = 0; i < count; i++)
      events.append(t0 + i, Buffer.from(`k${i}`), Buffer.from(`v${i}`), [['trace', `t${i}`]])
    const base = await write(broker, source, events)
    const dead = new RecordBatchBuilder()
    for (let i = 0; i < count; i++) {
      dead.append(t0 + i, Buffer.from('changed'), null, [
        ['__streams.errors.exception', 'TypeError'],
        ['__streams.errors.topic', source],
        ['__streams.errors.partition', '0'],
        ['__streams.errors.offset', String(base + i)],
      ])
    }
    await write(broker, letters, dead)
    const options = {
      deadLetterTopic: letters,
      isSource: (topic: string) => topic === source,
      now: () => t0,
    }
    const how = { dryRun: false, limit: 4 }
    for (const step of redriveSteps) {
      await assert.rejects(redrive({ ...options, broker: dyingAt(broker, step) }, {}, how), /died/, step)
    }
    for (let calls = 0; calls < count; calls++) {
      if (!(await redrive({ ...options, broker }, {}, how)).more) break
    }
    const lines: string[] = []
    // The last transaction's end may not be visible yet: it is once its identity is taken.
    await redrive({ ...options, broker }, {}, how)
    await scan(broker, source, (await spansOf(broker, source)) ?? [], ({ timestamp, key, value, headers }) => {
      lines.push(
        JSON.stringify([timestamp, String(key && Buffer.from(key)), String(value && Buffer.from(value)), headers]),
      )
      return true
    })
    assert.equal(lines.length, 2 * count)
    assert.deepEqual(lines.slice(count).sort(), lines.slice(0, count).sort(), 'each as it came, and once more')
  })
})
