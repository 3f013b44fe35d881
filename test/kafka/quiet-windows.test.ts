/** Windows that close while nothing comes, by what fetches from Apache Kafka tell: in process and through topics. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { LocalKafka } from '../../scripts/kafka/local-kafka.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { byKey, firstTime, TestEngine } from '../engine/support/engine.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { eventually } from '../support/millrace.ts'

const kafka = await kafkaForTests({ own: true })
const skip = 'skip' in kafka ? kafka.skip : false
const counted = ['long-counts', 'per-second']
const topics = [
  'blocked',
  'called',
  'ticks',
  'blocked-counts',
  'called-counts',
  're-keyed-counts',
  'per-two-seconds',
  'soon-in-task',
  'soon-elsewhere',
  ...counted,
]

describe('windows on Kafka that close in quiet', { skip }, () => {
  const broker = ('skip' in kafka ? undefined : kafka.broker) as LocalKafka
  const port = connectKafka({ bootstrapServers: skip ? ['127.0.0.1:1'] : [broker.bootstrap], clientId: 'quiet' })
  after(async () => {
    await port.close()
    if (!('skip' in kafka)) await kafka.stop()
  })

  for (const [i, split] of (['in-process', 'repartition-topics'] as const).entries()) {
    test(`are told with every record, behind a slow function too, ${split}`, async (t) => {
      for (const topic of topics) await port.createTopics([{ topic, partitions: 2 }])
      const engine = await TestEngine.start(t, 'quiet-or-slow', {
        'broker.bootstrap-servers': broker.bootstrap,
        'topology.sub-topology-split': split,
        'watermark.idleness-timeout': '200ms',
      })
      // A minute apart, for the topics are the same.
      const from = firstTime + 60_000 * i
      const at = (later: number, value: number) => ({ key: 'a', value, timestamp: from + later })
      await engine.put(
        'called',
        Array.from({ length: 21 }, (_, n) => at(n, n)),
      )
      await engine.put('ticks', [at(0, 1), at(100, 1), at(1200, 1)])
      await eventually(
        'three windows of re-keyed records and two of the others are told',
        async () => {
          const told = await Promise.all(counted.map((topic) => engine.read(topic)))
          return told.every(({ length }, which) => length >= (i + 1) * (which === 0 ? 3 : 2))
        },
        90_000,
      )
      const ofThisRun = async (topic: string): Promise<Record<string, number[]>> =>
        byKey<number>((await engine.read(topic)).filter(({ timestamp }) => timestamp >= from))
      assert.deepEqual(await ofThisRun('long-counts'), { 'third-0': [7], 'third-1': [7], 'third-2': [7] })
      assert.deepEqual(await ofThisRun('per-second'), { a: [2, 1] })
      assert.equal(engine.dropped('late'), 0)
    })
  }
})
