/** Batches and records that are too large for their topic, on a real Kafka. */
import { after, describe } from 'node:test'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { tooLargeTests } from '../support/too-large.ts'

describe('what is too large for its topic, on Kafka', async () => {
  const kafka = await kafkaForTests()
  const skip = 'skip' in kafka ? kafka.skip : false
  const servers = 'skip' in kafka ? '' : kafka.bootstrap
  const connected = skip
    ? undefined
    : connectKafka({ bootstrapServers: [servers], clientId: 'test', requestTimeoutMs: 10_000 })
  after(async () => {
    await (await connected)?.close()
    if (!('skip' in kafka)) await kafka.stop()
  })
  const config = { 'broker.bootstrap-servers': servers }
  tooLargeTests(async () => ({ config, client: await (connected as NonNullable<typeof connected>) }), skip, true)
})
