/** What a call to Kafka repeats, and for how long. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Retrier } from '../../../src/broker/kafka/retry.ts'
import { BrokerError } from '../../../src/broker/port.ts'

const missing = 'UNKNOWN_TOPIC_OR_PARTITION'
const forMs = 400
const options = { deadlineMs: () => 60_000, also: { codes: [missing], forMs } }

test('a topic that is not known behind an outage is asked for as long as one that was not known at first', async () => {
  const began = performance.now()
  let unknown = 0
  const answer = await new Retrier().run('asking', options, async () => {
    if (performance.now() - began < 2 * forMs) throw new BrokerError('UNREACHABLE', 'the broker is away')
    if (unknown++ === 0) throw new BrokerError(missing, 'the broker has just come back')
    return 'there'
  })
  assert.equal(answer, 'there')
})

test('a topic that stays unknown is believed to be missing', async () => {
  const asking = new Retrier().run('asking', options, () => Promise.reject(new BrokerError(missing, 'no such topic')))
  await assert.rejects(asking, { code: missing })
})
