import { after, before, describe } from 'node:test'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { kafkaForTests, type TestKafka } from '../support/kafka.ts'
import { lagRules } from '../support/lag-rules.ts'

const kafka = await kafkaForTests({ own: true })
const skip = 'skip' in kafka ? kafka.skip : false
const bootstrap = 'skip' in kafka ? '' : kafka.bootstrap

describe('lag on Kafka', { skip }, () => {
  before(async () => {
    const broker = await connectKafka({ bootstrapServers: [bootstrap], clientId: 'test', requestTimeoutMs: 10_000 })
    await broker.createTopics(['numbers', 'seen', 'sums'].map((topic) => ({ topic, partitions: 4 })))
    await broker.close()
  })
  after(() => (kafka as TestKafka).stop())
  lagRules(() => ({ 'broker.bootstrap-servers': bootstrap, 'engine.state.store': 'memory' }))
})
