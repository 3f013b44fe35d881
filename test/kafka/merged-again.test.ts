/**
 * A stream that is merged with what becomes of it behind a re-key, through topics: one task reads the stream and, behind the
 * topic, its own records again. It reads on meanwhile, and what comes back is in time all the same.
 */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { startRuntime } from '../../src/runtime/index.ts'
import { consume, firstTime, type In, produce } from '../engine/support/engine.ts'
import { kafkaForTests } from '../support/kafka.ts'
import type { Event } from './merged-again-app.ts'

const kafka = await kafkaForTests()
const skip = 'skip' in kafka ? kafka.skip : false
const records = 4000
const partitions = 5
const groups = 7
const windowMs = 10_000
const sorted = (texts: readonly string[]): string[] => texts.toSorted()

describe('a stream that is merged with what becomes of it behind a re-key', { skip }, () => {
  const servers = 'skip' in kafka ? '127.0.0.1:1' : kafka.bootstrap
  const port = connectKafka({ bootstrapServers: [servers], clientId: 'merged-again' })
  after(async () => {
    await port.close()
    if (!('skip' in kafka)) await kafka.stop()
  })

  test('has all its pairs and whole windows, though all of it was there before the start', async () => {
    const prefix = `merged-again-${process.pid}`
    const named = (name: string): string => `${prefix}-${name}`
    const topics = ['orders', 'payments', 'visits', 'paid', 'all', 'counted', 'visited'].map(named)
    await port.createTopics(topics.map((topic) => ({ topic, partitions })))
    const all = Array.from({ length: records }, (_, n) => n)
    // Half of all lie under one key; a payment comes 20 ms behind its order.
    const put = (name: string, behindMs: number): Promise<void> => {
      const input = all.map((n): In => {
        const value: Event = { id: String(n), group: `g${n % groups}` }
        return { key: n % 2 === 0 ? 'hot' : `k${n % 40}`, value, timestamp: firstTime + 100 * n + behindMs }
      })
      return produce(port, named(name), input)
    }
    await put('orders', 0)
    await put('payments', 20)
    await put('visits', 0)
    const warnings: string[] = []
    const runtime = await startRuntime({
      application: new URL(`merged-again-app.ts?prefix=${prefix}`, import.meta.url),
      config: {
        'broker.bootstrap-servers': servers,
        'engine.instance-id': 'one',
        'engine.state.store': 'memory',
        'runtime.http.enabled': false,
        'topology.sub-topology-split': 'repartition-topics',
      },
      log: ({ level, message }) => {
        if (level === 'warn' || level === 'error') warnings.push(message)
      },
    })
    await runtime.untilIdle()
    assert.equal(await runtime.stop(), 0)
    const read = async (name: string): Promise<string[]> =>
      (await consume(port, named(name))).map(({ value }) => (value as Event).id)
    assert.deepEqual(sorted(await read('paid')), sorted(all.map((n) => `paid ${n}`)))
    assert.deepEqual(sorted(await read('all')), sorted(all.flatMap((n) => [`paid ${n}`, `${n}`])))
    const windowOf = (n: number): number => Math.floor((firstTime + 100 * n) / windowMs)
    // Nothing closes the last ones.
    const closed = all.filter((n) => windowOf(n) < windowOf(records - 1))
    const windows = Map.groupBy(closed, (n) => `${n % groups}/${windowOf(n)}`)
    const counts = Array.from(windows.values(), ({ length }) => String(length))
    assert.deepEqual(sorted(await read('counted')), sorted(counts))
    assert.deepEqual(sorted(await read('visited')), sorted([...counts, ...all.map(String)]))
    assert.deepEqual(warnings, [])
  })
})
