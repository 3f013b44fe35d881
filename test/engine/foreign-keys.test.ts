/** Foreign-key joins through topics, where an answer may find that its left row is another one by now. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import { consume, firstTime, lastByKey, produce, TestEngine } from './support/engine.ts'

/** A broker, and an engine that comes to the end of what is there, as often as it is asked to. */
async function began(t: TestContext, app: string) {
  const broker = await startEmbeddedBroker({ partitions: 2 })
  t.after(() => broker.close())
  const client = broker.client()
  const life = async (): Promise<readonly string[]> => {
    const engine = await TestEngine.open(app, { 'topology.sub-topology-split': 'repartition-topics' }, broker)
    await engine.idle()
    await engine.stop()
    return engine.log.filter(({ level }) => level === 'warn').map(({ message }) => message)
  }
  return { client, life }
}

for (const app of ['kept-prices', 'told-prices']) {
  test(`a result does not outlive its rows where a left row comes again before its deletion was answered: ${app}`, async (t) => {
    const { client, life } = await began(t, app)
    await produce(client, 'prices', [{ key: 'tea', value: 3, timestamp: firstTime }], 2)
    await produce(client, 'orders', [{ key: 'first', value: { product: 'tea' }, timestamp: firstTime }], 2)
    await life()
    assert.deepEqual(lastByKey(await consume(client, 'priced')), { first: 3 })
    // All of it is there before the first answer can come.
    await produce(client, 'prices', [{ key: 'tea', value: null, timestamp: firstTime + 3 }])
    await produce(client, 'orders', [
      { key: 'first', value: null, timestamp: firstTime + 1 },
      { key: 'first', value: { product: 'tea', more: true }, timestamp: firstTime + 2 },
    ])
    await life()
    assert.deepEqual(lastByKey(await consume(client, 'priced')), { first: null })
  })

  test(`nor where a left row names no right row any more, and changes again before that was answered: ${app}`, async (t) => {
    const { client, life } = await began(t, app)
    const keys = ['changes', 'comes again', 'goes']
    await produce(client, 'prices', [{ key: 'tea', value: 3, timestamp: firstTime }], 2)
    const first = keys.map((key) => ({ key, value: { product: 'tea' }, timestamp: firstTime }))
    await produce(client, 'orders', first, 2)
    await life()
    assert.deepEqual(lastByKey(await consume(client, 'priced')), { changes: 3, 'comes again': 3, goes: 3 })
    // All of it is there before the first answer can come.
    await produce(client, 'orders', [
      { key: 'changes', value: { product: null }, timestamp: firstTime + 1 },
      { key: 'changes', value: { product: null, more: true }, timestamp: firstTime + 2 },
      { key: 'comes again', value: null, timestamp: firstTime + 1 },
      { key: 'comes again', value: { product: null }, timestamp: firstTime + 2 },
      { key: 'goes', value: { product: null }, timestamp: firstTime + 1 },
      { key: 'goes', value: null, timestamp: firstTime + 2 },
    ])
    await life()
    assert.deepEqual(lastByKey(await consume(client, 'priced')), { changes: null, 'comes again': null, goes: null })
  })

  test(`nor where a left row changes before it hears that its right row is gone: ${app}`, async (t) => {
    const { client, life } = await began(t, app)
    await produce(client, 'prices', [{ key: 'tea', value: 3, timestamp: firstTime }], 2)
    await produce(client, 'orders', [{ key: 'first', value: { product: 'tea' }, timestamp: firstTime }], 2)
    await life()
    assert.deepEqual(lastByKey(await consume(client, 'priced')), { first: 3 })
    // All of it is there before the first answer can come.
    await produce(client, 'prices', [{ key: 'tea', value: null, timestamp: firstTime + 1 }])
    await produce(client, 'orders', [{ key: 'first', value: { product: 'tea', more: true }, timestamp: firstTime + 2 }])
    await life()
    assert.deepEqual(lastByKey(await consume(client, 'priced')), { first: null })
  })
}

test('an answer finds its left row where a producer has put it, though its key says another partition', async (t) => {
  const { client, life } = await began(t, 'kept-prices')
  const keys = Array.from({ length: 40 }, (_, i) => `order-${i}`)
  /** A partition each, in turn: half of them lie where their key says. */
  const laid = (value: { product: string } | null, timestamp: number) =>
    keys.map((key, i) => ({ key, value, timestamp, partition: i % 2 }))
  const priced = async (): Promise<Record<string, unknown>> => lastByKey(await consume(client, 'priced'))
  const all = (value: unknown): Record<string, unknown> => Object.fromEntries(keys.map((key) => [key, value]))
  await produce(client, 'prices', [{ key: 'tea', value: 3, timestamp: firstTime }], 2)
  await produce(client, 'orders', laid({ product: 'tea' }, firstTime), 2)
  assert.deepEqual(await life(), [])
  assert.deepEqual(await priced(), all(3))
  await produce(client, 'prices', [{ key: 'tea', value: 4, timestamp: firstTime + 1 }])
  await life()
  assert.deepEqual(await priced(), all(4))
  await produce(client, 'orders', laid(null, firstTime + 2))
  await life()
  assert.deepEqual(await priced(), all(null))
})

test('right rows that lie elsewhere than their keys say are told of, for no left row finds them', async (t) => {
  const { client, life } = await began(t, 'kept-prices')
  const names = Array.from({ length: 20 }, (_, i) => `product-${i}`)
  const prices = names.map((key, i) => ({ key, value: i, timestamp: firstTime, partition: i % 2 }))
  await produce(client, 'prices', prices, 2)
  const orders = names.map((product) => ({ key: `of ${product}`, value: { product }, timestamp: firstTime }))
  await produce(client, 'orders', orders, 2)
  const warnings = await life()
  assert.equal(warnings.length, 1)
  assert.match(
    warnings[0] ?? '',
    /^the record prices\/[01] at offset \d has a key that belongs into partition [01] by Kafka's default partitioner, and the records of KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-\d+-topic lie /,
  )
})
