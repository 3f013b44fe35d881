/** Whoever reads a topic for people does not take a leader that is away for the end of it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { BrokerPort } from '../../src/broker/port.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { defineApp, serdes } from '../../src/index.ts'
import { deadLetters } from '../../src/runtime/data/dead-letters.ts'
import { redrive } from '../../src/runtime/data/redrive.ts'
import { TopicReader } from '../../src/runtime/topics/topic-reader.ts'
import { silentAbout } from '../support/silent-broker.ts'
import { World } from '../unit/engine/world.ts'

const how = { dryRun: false, limit: 100 }
const forEver = Number.POSITIVE_INFINITY

async function withLetters(): Promise<BrokerPort> {
  const { broker } = new World()
  const source = new RecordBatchBuilder()
  const letters = new RecordBatchBuilder()
  for (let i = 0; i < 3; i++) {
    const about = Object.entries({ topic: 'source', partition: '0', offset: String(i) })
    source.append(1000 + i, Buffer.from(`k${i}`), Buffer.from(`v${i}`), [])
    const headers = about.map(([name, value]) => [`__streams.errors.${name}`, value] as const)
    letters.append(1000 + i, Buffer.from(`k${i}`), null, headers)
  }
  for (const [topic, builder] of [['source', source] as const, ['letters', letters] as const]) {
    await broker.createTopics([{ topic, partitions: 1 }])
    await broker.produce({ transactionalId: null, batches: [{ topic, partition: 0, records: builder.finish() }] })
  }
  return broker
}

const optionsOf = (broker: BrokerPort) => ({
  broker,
  applicationId: 'app',
  deadLetterTopic: 'letters',
  isSource: (topic: string) => topic === 'source',
  now: () => 5000,
})

async function endOf(broker: BrokerPort, topic: string): Promise<number | undefined> {
  return (await broker.listOffsets([{ topic, partition: 0 }], 'stable'))[0]?.offset
}

describe('dead letters', { concurrency: true }, () => {
  test('are not put back again where their notes are not shown for a while', async () => {
    const broker = await withLetters()
    const first = await redrive(optionsOf(broker), {}, how)
    assert.deepEqual([first.redriven, first.already], [3, 0])
    const again = await redrive(optionsOf(silentAbout(broker, 'letters-redriven', 6)), {}, how)
    assert.deepEqual([again.redriven, again.already], [0, 3])
  })

  test('are not put back at all while their notes are not shown', async () => {
    const broker = await withLetters()
    await redrive(optionsOf(broker), {}, how)
    const end = await endOf(broker, 'source')
    const silent = silentAbout(broker, 'letters-redriven', forEver)
    await assert.rejects(redrive(optionsOf(silent), {}, how), {
      code: 'BROKER_UNREACHABLE',
      message: /shows nothing of letters-redriven:0, where more was committed/,
    })
    assert.equal(await endOf(broker, 'source'), end)
  })

  test('are not taken for gone where their records are not shown for a while', async () => {
    const broker = await withLetters()
    const { redriven, gone } = await redrive(optionsOf(silentAbout(broker, 'source', 6)), {}, how)
    assert.deepEqual([redriven, gone], [3, 0])
  })

  test('are all shown, or none', async () => {
    const broker = await withLetters()
    const topology = defineApp({ applicationId: 'app', build: (builder) => void builder.stream('source') }).compile()
    const shown = await deadLetters(silentAbout(broker, 'letters', 6), 'letters', topology, {}, 10)
    assert.equal(shown.letters.length, 3)
    const none = deadLetters(silentAbout(broker, 'letters', forEver), 'letters', topology, {}, 10)
    await assert.rejects(none, { code: 'BROKER_UNREACHABLE' })
  })
})

describe('a topic that is read to its end', { concurrency: true }, () => {
  const read = async (broker: BrokerPort): Promise<number> => {
    const pair = { key: serdes.string, value: serdes.string }
    const signal = new AbortController().signal
    const reader = new TopicReader({
      broker,
      topic: 'source',
      serdes: pair,
      from: 'earliest',
      signal,
      monotonic: () => 0,
    })
    let count = 0
    for await (const _ of reader.toTheEnd()) count++
    return count
  }

  test('is read whole where the broker shows nothing of it for a while', async () => {
    assert.equal(await read(silentAbout(await withLetters(), 'source', 6)), 3)
  })

  test('fails where it is not shown', async () => {
    await assert.rejects(read(silentAbout(await withLetters(), 'source', forEver)), { code: 'BROKER_UNREACHABLE' })
  })
})
