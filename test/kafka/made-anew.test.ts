/** A source topic that is deleted and made again on a real Kafka while the application is behind, with full buffers. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { type LogLine, type Runtime, startRuntime } from '../../src/runtime/index.ts'
import { consume, type In, produce } from '../engine/support/engine.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { eventually } from '../support/millrace.ts'

const kafka = await kafkaForTests()
const skip = 'skip' in kafka ? kafka.skip : false
const app = new URL('made-anew-app.ts', import.meta.url)
const partitions = [0, 1]
const slow = '&slow=10'
/** So that few records fill what is fetched ahead. */
const pad = 'x'.repeat(1000)
let runs = 0

const numbers = (from: number, count: number): In[] =>
  Array.from({ length: count }, (_, i) => ({ key: `k${i % 2}`, value: { n: from + i, pad }, partition: i % 2 }))

describe('a source topic that is made again while the application is behind', { skip }, () => {
  const servers = 'skip' in kafka ? '127.0.0.1:1' : kafka.bootstrap
  const port = connectKafka({ bootstrapServers: [servers], clientId: 'made-anew' })
  const lines: LogLine[] = []
  after(async () => {
    await port.close()
    if (!('skip' in kafka)) await kafka.stop()
  })

  function start(prefix: string, query: string, maxAgeMs: number): Promise<Runtime> {
    return startRuntime({
      application: new URL(`${app}?prefix=${prefix}${query}`),
      config: {
        'broker.bootstrap-servers': servers,
        'consumer.metadata.max.age.ms': maxAgeMs,
        // Long enough for a topic to be deleted and made between two commits: of one that is not there none is taken.
        'commit-barrier.interval-ms': 1500,
        'commit-barrier.idle-interval-ms': 1500,
        'engine.lanes.count': 2,
        'engine.processing.buffered-records-per-partition': 50,
        'engine.state.store': 'memory',
        'lane.max-in-flight': 4,
        'lane.queue-bytes': 65_536,
        'runtime.http.enabled': false,
      },
      log: (line) => lines.push(line),
    })
  }

  async function topics(): Promise<string> {
    const prefix = `made-anew-${process.pid}-${++runs}`
    const names = ['in', 'out', 'counts'].map((name) => `${prefix}-${name}`)
    await port.createTopics(names.map((topic) => ({ topic, partitions: partitions.length })))
    return prefix
  }

  const offsetsOf = async (prefix: string): Promise<number[]> => {
    const of = partitions.map((partition) => ({ topic: `${prefix}-in`, partition }))
    return (await port.committedOffsets(prefix, of, true)).map(({ offset }) => offset)
  }

  const newOnes = async (prefix: string): Promise<number[]> =>
    (await consume(port, `${prefix}-out`))
      .map(({ value }) => (value as { readonly n: number }).n)
      .filter((value) => value >= 10_000)
      .sort((a, b) => a - b)

  /** Behind by what is buffered, and by more that was not fetched yet; the topic is made anew then, with 400 records. */
  async function behind(prefix: string, query: string, maxAgeMs: number) {
    for (let from = 0; from < 2000; from += 100) await produce(port, `${prefix}-in`, numbers(from, 100))
    const runtime = await start(prefix, query, maxAgeMs)
    await eventually('it is under way', async () => (await offsetsOf(prefix)).some((offset) => offset > 0))
    const before = Math.max(...(await offsetsOf(prefix)))
    await port.deleteTopics([`${prefix}-in`])
    await port.createTopics([{ topic: `${prefix}-in`, partitions: partitions.length }])
    await produce(port, `${prefix}-in`, numbers(10_000, 400))
    return { runtime, before }
  }

  /** Stops it once what was buffered of the old one is committed. */
  async function leftBehind(prefix: string, query: string): Promise<void> {
    const { runtime, before } = await behind(prefix, query, 300_000)
    try {
      await eventually('what is buffered is committed', async () => {
        assert.equal(runtime.view.state().current, 'RUNNING', runtime.view.state().failure?.message)
        return (await offsetsOf(prefix)).some((offset) => offset > before)
      })
    } finally {
      await runtime.stop()
    }
  }

  test('is read from its beginning at the next start, where there are no stores', async () => {
    const prefix = await topics()
    await leftBehind(prefix, slow)
    const next = await start(prefix, '', 300_000)
    try {
      await eventually('all of the new one comes out', async () => (await newOnes(prefix)).length >= 400, 20_000)
      assert.deepEqual(
        await newOnes(prefix),
        Array.from({ length: 400 }, (_, i) => 10_000 + i),
      )
      const warned = lines.filter(({ message }) =>
        message.startsWith(`the topic ${prefix}-in was deleted and made again`),
      )
      assert.equal(warned.length, 1)
    } finally {
      assert.equal(await next.stop(), 0)
    }
  })

  test('is refused at the next start, where a store holds what was read of the old one', async () => {
    const prefix = await topics()
    await leftBehind(prefix, `${slow}&counts`)
    const next = await start(prefix, '&counts', 300_000)
    try {
      await eventually('it is refused', () => next.view.state().current === 'FAILED', 20_000)
      const { failure } = next.view.state()
      assert.equal(failure?.code, 'OFFSETS_MISSING')
      assert.match(
        failure?.message ?? '',
        /^the store counts holds what was read of a topic made-anew-\d+-\d+-in that was/,
      )
      assert.deepEqual(await newOnes(prefix), [])
    } finally {
      await next.stop()
    }
  })

  test('ends the run as soon as topics are looked for, and not only once the buffers are empty', async () => {
    const prefix = await topics()
    const { runtime } = await behind(prefix, slow, 300)
    try {
      await eventually('it has failed', () => runtime.view.state().current === 'FAILED', 10_000)
      const { failure } = runtime.view.state()
      assert.equal(failure?.code, 'TOPIC_MISSING')
      assert.match(failure?.message ?? '', /-in was deleted while it was read/)
      assert.ok((await consume(port, `${prefix}-out`)).length < 2000)
    } finally {
      await runtime.stop()
    }
  })
})
