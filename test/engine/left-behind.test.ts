/** An application whose split is changed while records are on their way between its sub-topologies. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { startEmbeddedBroker, startRuntime } from '../../src/runtime/index.ts'
import { eventually } from '../support/millrace.ts'
import { appFile, consume, lastByKey, produce, TestEngine } from './support/engine.ts'

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

test('records in a repartition topic are not left out by a version in which it has another name', async (t) => {
  const broker = await startEmbeddedBroker({ partitions: 2 })
  t.after(() => broker.close())
  const client = broker.client()
  await client.createTopics([{ topic: 'names', partitions: 2 }])
  const start = async (search: string) => {
    const application = pathToFileURL(appFile('moved-repartition'))
    application.search = search
    const config = { 'runtime.http.enabled': false, 'topology.sub-topology-split': 'repartition-topics' } as const
    const runtime = await startRuntime({
      application,
      broker,
      config: { ...config, 'engine.instance-id': 'one' },
      log: () => undefined,
    })
    t.after(() => runtime.stop())
    return runtime
  }
  const named = async (): Promise<string[]> => (await consume(client, 'named')).map(({ value }) => `${value}`).sort()
  const numbers = Array.from({ length: 30 }, (_, i) => ({ key: `k${i}`, value: i }))
  const told = (upTo: number): string[] => Array.from({ length: upTo }, (_, i) => `nobody ${i}`).sort()

  await produce(client, 'numbers', numbers, 2)
  const first = await start('')
  await first.untilIdle()
  await first.stop()
  assert.deepEqual(await named(), told(30))
  const [old] = (await client.topics(null)).filter(({ topic }) => topic.endsWith('-repartition'))
  assert.ok(old !== undefined)
  // All of it was processed.
  const second = await start('filtered')
  await second.untilIdle()
  assert.equal(second.view.state().current, 'RUNNING')
  await second.stop()
  const topics = (await client.topics(null)).filter(({ topic }) => topic.endsWith('-repartition'))
  assert.equal(topics.length, 2)

  await produce(client, old.topic, [{ key: 'mod-0', value: 30 }])
  const third = await start('filtered')
  await eventually('it has refused', () => third.view.state().current === 'FAILED')
  const { failure } = third.view.state()
  assert.equal(failure?.code, 'STATE_CHANGED')
  assert.ok(
    failure.message.startsWith(`records wait in ${old.topic}, which this version of moved-repartition does not`),
  )
  await third.stop()

  const fourth = await start('')
  await fourth.untilIdle()
  await fourth.stop()
  assert.deepEqual(await named(), told(31))
  const fifth = await start('filtered')
  await eventually('it runs', () => fifth.view.state().current === 'RUNNING')
})
