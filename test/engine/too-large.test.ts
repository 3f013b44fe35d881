/** Batches and records that are too large for their topic, on the embedded broker. */
import { after, describe } from 'node:test'
import { startEmbeddedBroker } from '../../src/broker/embedded/start.ts'
import { tooLargeTests } from '../support/too-large.ts'

describe('what is too large for its topic, on the embedded broker', async () => {
  const embedded = await startEmbeddedBroker({ partitions: 1 })
  const client = embedded.client()
  after(async () => {
    await client.close()
    await embedded.close()
  })
  tooLargeTests(() => ({ config: {}, embedded, client }), false, false)
})
