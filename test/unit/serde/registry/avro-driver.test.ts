/** Avro over the embedded registry, through the test driver: what applications see. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp, serdes } from '../../../../src/index.ts'
import { avro, EmbeddedRegistry } from '../../../../src/serde/registry/index.ts'
import { TopologyTestDriver } from '../../../../src/testing/index.ts'

interface Order {
  readonly id: string
  readonly amount: number
  readonly note: string | null
}

const order = {
  type: 'record',
  name: 'Order',
  namespace: 'com.acme',
  fields: [
    { name: 'id', type: 'string' },
    { name: 'amount', type: 'double' },
    { name: 'note', type: ['null', 'string'], default: null },
  ],
}

const total = {
  type: 'record',
  name: 'Total',
  namespace: 'com.acme',
  fields: [
    { name: 'amount', type: 'double' },
    { name: 'orders', type: 'long' },
  ],
}

describe('Avro in an application', () => {
  test('keys of windows stand under the subject of their topic', async (t) => {
    const key = { type: 'record', name: 'Shop', namespace: 'com.acme', fields: [{ name: 'shop', type: 'string' }] }
    const minutes = (schema?: object) => serdes.windowed(avro<{ shop: string }>(schema), 60_000)
    const app = defineApp({
      applicationId: 'minutes',
      build(topology) {
        topology
          .stream('in', { key: minutes(), value: serdes.string })
          .to('out', { key: minutes(key), value: serdes.string })
      },
    })
    const registry = new EmbeddedRegistry()
    registry.register('in-key', key)
    const driver = new TopologyTestDriver(app, { registry })
    t.after(() => driver.close())
    const window = { key: { shop: 'a' }, start: 60_000, end: 120_000 }
    await driver.input<typeof window, string>('in').pipe(window, 'x')
    assert.deepEqual(
      driver
        .output('out')
        .readAll()
        .map((record) => record.key),
      [window],
    )
    assert.deepEqual(registry.handle({ method: 'GET', path: '/subjects' }).body, ['in-key', 'out-key'])
  })

  test('reads, keeps in a store and writes records with the ids of their schemas', async (t) => {
    const app = defineApp({
      applicationId: 'totals',
      build(topology) {
        topology
          .stream('orders', { value: avro<Order>(order) })
          .groupByKey()
          .aggregate(
            () => ({ amount: 0, orders: 0 }),
            (sum, { amount }) => ({ amount: sum.amount + amount, orders: sum.orders + 1 }),
            { store: { name: 'totals', value: avro<{ amount: number; orders: number }>(total) } },
          )
          .toStream()
          .to('totals', { value: avro(total) })
      },
    })
    const registry = new EmbeddedRegistry()
    const driver = new TopologyTestDriver(app, { registry })
    t.after(() => driver.close())
    const orders = driver.input<string, Order>('orders')
    await orders.pipe('a', { id: '1', amount: 2.5, note: null })
    await orders.pipe('a', { id: '2', amount: 4, note: 'gift' })
    assert.deepEqual(
      driver
        .output('totals')
        .readAll()
        .map(({ value }) => value),
      [
        { amount: 2.5, orders: 1 },
        { amount: 6.5, orders: 2 },
      ],
    )
    assert.deepEqual(registry.handle({ method: 'GET', path: '/subjects' }).body, [
      'orders-value',
      'totals-value',
      'com.acme.Total',
    ])
    await orders.pipe('a', { id: '3', amount: 1, note: null })
    const [record] = driver.output('totals', { value: serdes.bytes }).readAll()
    const bytes = record?.value as Uint8Array
    const id = registry.register('totals-value', total)
    assert.deepEqual([...bytes.subarray(0, 5)], [0, 0, 0, 0, id])
  })

  test('goes on in every lane, also after a restart, with one registry for all', async (t) => {
    const app = defineApp({
      applicationId: 'counts',
      build(topology) {
        topology
          .stream('orders', { key: serdes.string, value: avro<Order>(order) })
          .groupByKey()
          .reduce((sum, next) => ({ ...next, amount: sum.amount + next.amount }), { store: 'sums' })
          .toStream()
          .to('sums', { value: avro(order) })
      },
    })
    const registry = new EmbeddedRegistry()
    const driver = new TopologyTestDriver(app, { registry, partitions: 3, lanes: 3 })
    t.after(() => driver.close())
    const orders = driver.input<string, Order>('orders')
    const keys = ['a', 'b', 'c', 'd', 'e', 'f']
    for (const key of keys) await orders.pipe(key, { id: '1', amount: 2, note: null })
    await driver.restart()
    await orders.pipeAll(keys.map((key) => ({ key, value: { id: '2', amount: 3, note: null } })))
    const sums = driver.output<string, Order>('sums').readAll()
    assert.deepEqual(
      sums.map(({ key, value }) => `${key} ${value.amount}`).sort(),
      keys.flatMap((k) => [`${k} 2`, `${k} 5`]),
    )
    assert.deepEqual(driver.dropped(), [])
  })
})
