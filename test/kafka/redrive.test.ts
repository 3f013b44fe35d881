/** Dead letters on a real Kafka: put back once each, although the process dies at every step of it. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { redrive } from '../../src/runtime/data/redrive.ts'
import { scan, spansOf } from '../../src/runtime/data/topic-scan.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
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
