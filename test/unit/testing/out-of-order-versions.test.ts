/** A version of a row that is older than the newest one: the table has it, and what follows the newest rows passes it over. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineApp, serdes, type Table, type Topology } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

const number = { key: serdes.string, value: serdes.json<number>() }
const second = 1000

function table(topology: Topology, topic: string): Table<string, number> {
  const store = { name: topic, type: 'versioned', historyRetention: '1d' } as const
  return topology.table<string, number>(topic, { ...number, watermark: { maxOutOfOrderness: '1m' }, store })
}

const app = defineApp({
  applicationId: 'versions',
  config: { 'errors.dropped': 'dead-letter' },
  build(topology) {
    const prices = table(topology, 'prices')
    const rates = table(topology, 'rates')
    topology
      .stream('orders', number)
      .join(prices, (order, price) => `${order} for ${price}`)
      .to('priced')
    prices
      .groupBy((price) => ['all', price], number)
      .count()
      .toStream()
      .to('counts')
    prices
      .join(rates, (price, rate) => price * rate)
      .toStream()
      .to('converted')
    prices
      .join(rates, (price, rate) => price + rate, { on: () => 'a' })
      .toStream()
      .to('added')
  },
})

test('it is counted where it goes no further, is found where it is looked for, and becomes no dead letter', async () => {
  const driver = new TopologyTestDriver(app)
  await driver.input('rates').pipe('a', 10, { timestamp: 90 * second })
  await driver.input('prices').pipe('a', 1, { timestamp: 100 * second })
  await driver.input('prices').pipe('a', 2, { timestamp: 99 * second })
  await driver.input('orders').pipe('a', 7, { timestamp: 99.5 * second })
  const values = (topic: string): unknown[] =>
    driver
      .output(topic)
      .readAll()
      .map(({ value }) => value)
  assert.deepEqual(values('priced'), ['7 for 2'])
  assert.deepEqual(values('counts'), [1])
  assert.deepEqual(values('converted'), [10])
  assert.deepEqual(values('added'), [11])
  const dropped = driver.dropped().map(({ reason, value }) => [reason, value])
  assert.deepEqual(dropped, Array(3).fill(['out_of_order', 2]))
  assert.deepEqual(values('versions-dead-letters'), [])
})
