/** Dead letters whose topic was made anew, and those of applications that share a topic for them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BrokerPort } from '../../src/broker/port.ts'
import { redrive, type RedriveOptions } from '../../src/runtime/data/redrive.ts'
import { deadLetters } from '../../src/runtime/data/dead-letters.ts'
import { type EmbeddedBroker, startEmbeddedBroker } from '../../src/runtime/index.ts'
import { BrokerError } from '../../src/broker/port.ts'
import { consume, firstTime, produce, TestEngine } from './support/engine.ts'

const config = { 'errors.processing': 'dead-letter', 'broker.embedded.partitions': 1 }
const lettersTopic = 'refusing-dead-letters'
const optionsOf = (broker: BrokerPort): RedriveOptions => ({
  broker,
  deadLetterTopic: lettersTopic,
  isSource: (topic) => topic === 'orders',
  now: () => firstTime,
})
const how = { dryRun: false, limit: 1000 }

/** The application with these orders, up to their end; they are numbered from `from`. */
async function orders(
  t: Parameters<typeof TestEngine.start>[0],
  broker: EmbeddedBroker,
  from: number,
  isWrong = false,
) {
  const records = Array.from({ length: 10 }, (_, i) => ({
    key: `k${i}`,
    value: { n: from + i, isWrong },
  }))
  await produce(broker.client(), 'orders', records, 1)
  const engine = await TestEngine.start(t, 'refusing', config, broker)
  await engine.idle()
  await engine.stop()
}

const numbers = async (client: BrokerPort): Promise<number[]> =>
  (await consume(client, 'orders')).map(({ value }) => (value as { n: number }).n)

test('a letter is not put back as another record, once its topic was made anew', async (t) => {
  const broker = await startEmbeddedBroker({ partitions: 1 })
  t.after(() => broker.close())
  const client = broker.client()
  const anew = () => client.deleteTopics(['orders'])
  await orders(t, broker, 0, true)
  assert.equal((await redrive(optionsOf(client), {}, { ...how, dryRun: true })).redriven, 10)

  await anew()
  await orders(t, broker, 1000)
  const gone = await redrive(optionsOf(client), {}, how)
  assert.deepEqual([gone.matched, gone.redriven, gone.gone], [10, 0, 10])
  assert.deepEqual(
    await numbers(client),
    Array.from({ length: 10 }, (_, i) => 1000 + i),
  )

  // Letters that were put back do not stand for those of another record at the same place.
  await anew()
  await orders(t, broker, 2000, true)
  const first = await redrive(optionsOf(client), {}, how)
  assert.deepEqual([first.redriven, first.gone], [10, 10])
  await anew()
  await orders(t, broker, 3000, true)
  const shown = await deadLetters(client, lettersTopic, { sources: [] } as never, {}, 10)
  assert.deepEqual(
    shown.letters.map(({ redriven }) => redriven),
    Array.from({ length: 10 }, () => false),
  )
  const second = await redrive(optionsOf(client), {}, how)
  assert.deepEqual([second.redriven, second.already, second.gone], [10, 10, 10])

  // Nor do letters of a topic that was deleted stand for those that lie there now.
  await client.deleteTopics([lettersTopic])
  await orders(t, broker, 4000, true)
  const third = await redrive(optionsOf(client), {}, how)
  // The ten of before are read again, and fail again.
  assert.deepEqual([third.redriven, third.already], [20, 0])
})

test('applications that share a topic of dead letters put a record back once, both at the same time', async (t) => {
  const broker = await startEmbeddedBroker({ partitions: 1 })
  t.after(() => broker.close())
  const client = broker.client()
  const count = 10
  await orders(t, broker, 0, true)
  const both = async (): Promise<void> => {
    for (let tries = 0; tries < 100; tries++) {
      const done = await redrive(optionsOf(broker.client()), {}, { ...how, limit: 2 }).catch((error: unknown) => {
        if (!(error instanceof BrokerError)) throw error
        return undefined
      })
      if (done?.more === false) return
    }
  }
  await Promise.all([both(), both()])
  assert.equal((await numbers(client)).length, 2 * count)
})
