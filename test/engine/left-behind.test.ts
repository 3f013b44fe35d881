/** An application whose split is changed while records are on their way between its sub-topologies. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import { lastByKey, produce, TestEngine } from './support/engine.ts'

test('records in a repartition topic are not left out by a process that hands over in process', async (t) => {
  const broker = await startEmbeddedBroker({ partitions: 2 })
  t.after(() => broker.close())
  const client = broker.client()
  const start = (split: string) =>
    TestEngine.start(t, 'running-sum', { 'topology.sub-topology-split': split, 'engine.instance-id': 'one' }, broker)
  const numbers = Array.from({ length: 30 }, (_, i) => ({ key: `k${i}`, value: i }))
  const sums = (times: number): Record<string, number> => ({
    'mod-0': 135 * times,
    'mod-1': 145 * times,
    'mod-2': 155 * times,
  })

  const first = await start('repartition-topics')
  await first.put('numbers', numbers)
  await first.idle()
  await first.stop()
  // All of it was processed: nothing but marks of transactions lies behind what was committed.
  const second = await start('in-process')
  await second.put('numbers', numbers)
  await second.idle()
  assert.deepEqual(lastByKey(await second.read('sums')), sums(2))
  await second.stop()

  const topic = (await client.topics(null)).map((info) => info.topic).find((name) => name.endsWith('-repartition'))
  assert.ok(topic !== undefined)
  await produce(client, topic, [{ key: 'mod-0', value: 1000 }])
  const third = await start('in-process')
  await third.reaches('FAILED')
  const { failure } = third.runtime.view.state()
  assert.equal(failure?.code, 'STATE_CHANGED')
  assert.match(
    failure.message,
    /^records wait in .*-repartition, .* with repartition-topics until it has processed them/,
  )
  await third.stop()

  const fourth = await start('repartition-topics')
  await fourth.idle()
  assert.deepEqual(lastByKey(await fourth.read('sums')), { ...sums(2), 'mod-0': 1270 })
  await fourth.stop()
  const fifth = await start('in-process')
  await fifth.reaches('RUNNING')
})
