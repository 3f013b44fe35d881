/** Event times are the data's, whatever a cluster makes of its own topics by default. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { LocalKafka } from '../../scripts/kafka/local-kafka.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { TestEngine } from '../engine/support/engine.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { eventually } from '../support/millrace.ts'

const kafka = await kafkaForTests({ own: true })
const skip = 'skip' in kafka ? kafka.skip : false
const takesAll = { 'message.timestamp.type': 'CreateTime', 'message.timestamp.before.max.ms': '9223372036854775807' }
const longAgo = Date.UTC(2020, 0, 1)
const dayMs = 86_400_000

describe('event times on Kafka', { skip }, () => {
  const broker = ('skip' in kafka ? undefined : kafka.broker) as LocalKafka
  const port = connectKafka({ bootstrapServers: skip ? ['127.0.0.1:1'] : [broker.bootstrap], clientId: 'times' })
  after(async () => {
    await port.close()
    if (!('skip' in kafka)) await kafka.stop()
  })
  const alterBroker = (change: string): Promise<string> =>
    broker.tool('kafka.admin.ConfigCommand', [
      ...['--bootstrap-server', broker.bootstrap, '--alter', '--entity-type', 'brokers', '--entity-default'],
      ...['--add-config', change],
    ])
  const settings = {
    'broker.bootstrap-servers': skip ? '' : broker.bootstrap,
    'topology.sub-topology-split': 'repartition-topics',
  }

  test('a write that is refused for several of its records fails at once, with the reason', async () => {
    const config = { 'message.timestamp.before.max.ms': String(dayMs) }
    await port.createTopics([{ topic: 'recent', partitions: 1, config }])
    for (const count of [1, 2, 30]) {
      const builder = new RecordBatchBuilder()
      for (let i = 0; i < count; i++) builder.append(longAgo, Buffer.from('k'), Buffer.from('v'), noHeaders)
      const batches = [{ topic: 'recent', partition: 0, records: builder.finish() }]
      await assert.rejects(port.produce({ transactionalId: null, batches }), { code: 'INVALID_TIMESTAMP' })
    }
  })

  test('are kept by the topics between sub-topologies, and by changelogs, of a cluster that has other defaults', async (t) => {
    for (const topic of ['numbers', 'window-counts'])
      await port.createTopics([{ topic, partitions: 2, config: takesAll }])
    await alterBroker(`log.message.timestamp.type=LogAppendTime,log.message.timestamp.before.max.ms=${dayMs}`)
    t.after(() => alterBroker('log.message.timestamp.type=CreateTime'))
    const engine = await TestEngine.start(t, 'windows-through-topics', settings)
    const values = Array.from({ length: 300 }, (_, i) => i)
    await engine.put(
      'numbers',
      values.map((value) => ({ key: `k${value % 7}`, value, timestamp: longAgo + value * 20 })),
    )
    await engine.idle()
    const expected: Record<string, number> = {}
    for (const value of values) {
      const window = `g${value % 3}@${longAgo + Math.floor(value / 50) * 1000}`
      expected[window] = (expected[window] ?? 0) + 1
    }
    const told = (await engine.read('window-counts')).map(({ key, value }) => [key, value])
    assert.deepEqual(Object.fromEntries(told), expected)
  })

  test('are those of dead letters, in the topic that is made for them', async (t) => {
    const id = 'windows-through-topics'
    const config = { ...settings, 'errors.decoding': 'dead-letter', 'errors.dead-letter-topic': 'letters' }
    await alterBroker(`log.message.timestamp.before.max.ms=${dayMs},log.message.timestamp.after.max.ms=${dayMs}`)
    for (const topic of ['numbers', 'window-counts'])
      await port.createTopics([{ topic, partitions: 2, config: takesAll }])
    const engine = await TestEngine.start(t, id, config)
    const timestamp = longAgo + 20_000
    await engine.put('numbers', [{ key: 'k', value: Buffer.from('{'), timestamp }])
    await engine.idle()
    const [letter] = await engine.read('letters')
    assert.deepEqual([letter?.key, letter?.timestamp], ['k', timestamp])
  })

  test('are not given up to a topic that has the time of the broker', async (t) => {
    const topic = 'windows-through-topics-by-group-repartition'
    await port.deleteTopics([topic])
    await eventually('the topic is gone', async () => (await port.topics([topic])).length === 0)
    await port.createTopics([{ topic, partitions: 2, config: { 'message.timestamp.type': 'LogAppendTime' } }])
    const engine = await TestEngine.start(t, 'windows-through-topics', settings)
    await engine.reaches('FAILED')
    const { failure } = engine.runtime.view.state()
    assert.equal(failure?.code, 'CONFIG_INVALID')
    assert.match(failure?.message ?? '', /-by-group-repartition gives its records the broker's time .* to CreateTime/)
  })
})
