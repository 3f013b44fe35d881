/** Partitions turn idle once the broker says that they are empty, and do not wait for a fetch that waits there. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import { TestProducer } from '../support/broker-io.ts'
import { eventually } from '../support/millrace.ts'
import { TestEngine } from './support/engine.ts'

const fetchWaitMs = 60_000

test('a partition is idle when its time is over, though a fetch waits at the broker for far longer', async (t) => {
  const engine = await TestEngine.start(t, 'counted-windows', {
    'runtime.http.enabled': false,
    'watermark.idleness-timeout': '300ms',
    'consumer.fetch.max.wait.ms': fetchWaitMs,
  })
  await engine.put('clicks', [{ key: 'k', value: { page: 'p' } }])
  const idle = (): boolean => {
    const partitions = Object.values(engine.runtime.view.watermarks()?.partitions ?? {})
    const isRead = partitions.some(({ lastEventTimeMs }) => lastEventTimeMs !== null)
    return isRead && partitions.every((partition) => partition.idle)
  }
  await eventually('all partitions are idle', idle, fetchWaitMs / 2)
})

test('a record behind an open transaction is in time, however long that takes', async (t) => {
  const broker = await startEmbeddedBroker({ partitions: 2 })
  t.after(() => broker.close())
  const config = { 'runtime.http.enabled': false, 'watermark.idleness-timeout': '300ms' }
  const engine = await TestEngine.start(t, 'counted-windows', config, broker)
  const value = { page: 'p' }
  await engine.reaches('RUNNING')
  const client = broker.client('other')
  t.after(() => client.close())
  const producer = await TestProducer.open(client, 'other')
  await producer.write('clicks', 1, [{ key: 'held', value: JSON.stringify(value), timestamp: 5000 }])
  await engine.put('clicks', [
    { key: 'a', value, timestamp: 1000, partition: 0 },
    { key: 'a', value, timestamp: 60_000, partition: 0 },
  ])
  await sleep(1500)
  assert.deepEqual(await engine.read('counts'), [], 'no window has closed')
  await producer.end(true)
  const held = () => engine.runtime.view.watermarks()?.partitions['clicks:1']
  await eventually('the record is read', () => (held()?.lastEventTimeMs ?? null) !== null)
  await engine.put('clicks', [{ key: 'a', value, timestamp: 61_000, partition: 0 }])
  await eventually('both windows close', async () => (await engine.read('counts')).length === 2)
  const counted = (await engine.read('counts')).map((row) => row.key).sort()
  assert.deepEqual(counted, ['a', 'held'])
})
