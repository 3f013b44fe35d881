/**
 * A sink right below a change of the key writes what comes of one partition in the order of that partition, as Kafka
 * Streams does, whatever keys its records had. Topics are full when the engine starts, and keys are skewed.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Random } from '../../src/base/random.ts'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import { keySlot } from '../../src/base/hash.ts'
import { firstTime, type In, lastByKey, type Out, produce, TestEngine } from './support/engine.ts'
import type { Order } from './apps/rekeyed-sinks.ts'

const count = 20_000
const partitions = 4
const sinks = ['selected', 'filtered', 'mapped', 'flat-mapped', 'forwarded']

/** Half of the orders are those of one customer in twenty. `ownRule`: the producer does not go by the hash of the key. */
function orders(seed: number, ownRule: boolean): In[] {
  const random = new Random(seed)
  const next = Array.from({ length: partitions }, () => 0)
  return Array.from({ length: count }, (_, i) => {
    const customer = random.chance(0.5) ? random.int(10) : random.int(200)
    const key = `customer-${customer}`
    const partition = (ownRule ? customer : keySlot(Buffer.from(key))) % partitions
    const nth = next[partition] as number
    next[partition] = nth + 1
    const value: Order = { product: `product-${random.int(20)}`, partition, nth }
    return { key, value, partition, timestamp: firstTime + i * 10 }
  })
}

/** Of each product the orders of each partition, in their order. */
function byProduct(records: readonly { readonly value: unknown }[]): Record<string, number[]> {
  const orders = Map.groupBy(
    records.map(({ value }) => value as Order),
    ({ product, partition }) => `${product}, partition ${partition}`,
  )
  return Object.fromEntries([...orders].map(([name, some]) => [name, some.map(({ nth }) => nth)]))
}

/** The same in partitions that are told apart from those of the other topics. */
function elsewhere(record: In): In {
  const order = record.value as Order
  return { ...record, value: { ...order, partition: order.partition + partitions } }
}

const isElsewhere = ({ value }: Out): boolean => (value as Order).partition >= partitions

const isEven = ({ value }: In): boolean => (value as Order).nth % 2 === 0

describe('records that are written under another key', () => {
  for (const lanes of [1, 2, 3, 8]) {
    for (const ownRule of [false, true]) {
      const how = ownRule ? ', shared out by a rule of the producer' : ''
      test(`keep the order of their partition: ${lanes} lanes${how}`, async (t) => {
        const broker = await startEmbeddedBroker({ partitions })
        t.after(() => broker.close())
        const records = orders(lanes, ownRule)
        const shops = orders(lanes + 10, false)
        await produce(broker.client(), 'orders', records, partitions)
        await produce(broker.client(), 'kept-orders', records, partitions)
        await produce(broker.client(), 'web-orders', records, partitions)
        await produce(broker.client(), 'shop-orders', shops.map(elsewhere), partitions)
        const engine = await TestEngine.start(t, 'rekeyed-sinks', { 'engine.lanes.count': lanes }, broker)
        await engine.idle()
        for (const sink of sinks) {
          const expected = byProduct(sink === 'filtered' ? records.filter(isEven) : records)
          const found = await engine.read(sink)
          assert.deepEqual(byProduct(found), expected, sink)
          for (const { key, value } of found) assert.equal(key, (value as Order).product)
        }
        // With stores, and of several topics, it is the hash of the key that finds the task.
        const merged = Map.groupBy(await engine.read('merged'), isElsewhere)
        assert.deepEqual(byProduct(merged.get(true) ?? []), byProduct(shops.map(elsewhere)))
        if (!ownRule) {
          assert.deepEqual(byProduct(merged.get(false) ?? []), byProduct(records))
          assert.deepEqual(byProduct(await engine.read('beside-rows')), byProduct(records))
        }
        const counts = lastByKey<number>(await engine.read('counts'))
        const sums = Map.groupBy(records, ({ value }) => (value as Order).product)
        assert.deepEqual(counts, Object.fromEntries([...sums].map(([product, some]) => [product, some.length])))
      })
    }
  }
})
