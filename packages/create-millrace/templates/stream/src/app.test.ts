import { test } from 'node:test'
import { TopologyTestDriver } from 'millrace/testing'
import app, { type Order } from './app.ts'

test('orders add up for each customer', async (t) => {
  const driver = new TopologyTestDriver(app)
  t.after(() => driver.close())
  const orders = driver.input<string, Order>('orders')
  await orders.pipe('1', { customer: 'ann', amount: 40 })
  await orders.pipe('2', { customer: 'bob', amount: 7 })
  await orders.pipe('3', { customer: 'ann', amount: 2 })
  driver.output('totals').expect([
    { key: 'ann', value: 40 },
    { key: 'bob', value: 7 },
    { key: 'ann', value: 42 },
  ])
})

test('only large orders are passed on', async (t) => {
  const driver = new TopologyTestDriver(app)
  t.after(() => driver.close())
  const orders = driver.input<string, Order>('orders')
  await orders.pipe('1', { customer: 'ann', amount: 999 })
  await orders.pipe('2', { customer: 'bob', amount: 1000 })
  driver.output('large-orders').expect([{ key: '2' }])
})
