/** Is the embedded broker a faithful model? The same random scripts on it and on a real Kafka must go alike. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type EmbeddedBroker, startEmbeddedBroker } from '../../src/broker/embedded/start.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { runTransactionScript } from '../conformance/broker/transaction-scripts.ts'
import { kafkaForTests } from '../support/kafka.ts'

const kafka = await kafkaForTests({ transactionVersion: 2 })
const scripts = 60

describe('the embedded broker against Kafka', { skip: 'skip' in kafka ? kafka.skip : false }, () => {
  let embedded: EmbeddedBroker
  let ours: BrokerPort[] = []
  let theirs: BrokerPort[] = []
  before(async () => {
    if ('skip' in kafka) return
    embedded = await startEmbeddedBroker({ partitions: 1 })
    ours = [0, 1, 2].map(() => embedded.client())
    theirs = [0, 1, 2].map(() => connectKafka({ bootstrapServers: [kafka.bootstrap], clientId: 'model' }))
  })
  after(async () => {
    for (const client of [...ours, ...theirs]) await client.close()
    if ('skip' in kafka) return
    await embedded.close()
    await kafka.stop()
  })

  test(`${scripts} random scripts of three processes with one transactional id`, async () => {
    const base = Number(process.env.SEED ?? 1)
    for (let seed = base; seed < base + scripts; seed++) {
      const expected = await runTransactionScript(theirs, seed)
      assert.deepEqual(await runTransactionScript(ours, seed), expected, `SEED=${seed}`)
    }
  })
})
