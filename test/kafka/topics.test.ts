/** Producing and reading in code, on a real Kafka. */
import { after, before, describe } from 'node:test'
import { join } from 'node:path'
import { type Runtime, startRuntime } from 'millrace/runtime'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { kafkaForTests, type TestKafka } from '../support/kafka.ts'
import { topicsSuite } from '../support/topics-suite.ts'

describe('producing and reading in code on Kafka', async () => {
  const kafka = await kafkaForTests()
  const skip = 'skip' in kafka ? kafka.skip : false
  let runtime: Runtime | undefined

  before(async () => {
    if (skip) return
    const servers = (kafka as TestKafka).bootstrap
    const broker = await connectKafka({ bootstrapServers: [servers], clientId: 'test', requestTimeoutMs: 10_000 })
    await broker.createTopics(['numbers', 'seen', 'sums'].map((topic) => ({ topic, partitions: 4 })))
    await broker.close()
    runtime = await startRuntime({
      application: join(import.meta.dirname, '..', 'engine', 'apps', 'running-sum.ts'),
      config: {
        'broker.bootstrap-servers': servers,
        'runtime.http.enabled': false,
        'engine.lanes.count': 2,
        'engine.state.store': 'memory',
      },
      log: () => undefined,
    })
  })
  after(async () => {
    await runtime?.stop()
    if (!('skip' in kafka)) await (kafka as TestKafka).stop()
  })

  topicsSuite(() => runtime as Runtime, skip)
})
