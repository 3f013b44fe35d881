import { defineApp, serdes } from '../../../src/index.ts'

interface Order {
  readonly id: string
  readonly customer: string
}

/** A re-key, a store behind it of which each record makes one result, and an asynchronous function. */
export default defineApp({
  applicationId: 'traced',
  config: { 'log.level': 'warn' },
  build: (topology) =>
    topology
      .stream('orders', { key: serdes.string, value: serdes.json<Order>() })
      .filter((order) => order.id !== 'dropped', { name: 'kept' })
      .mapValues(
        async (order, _key, _record, { logger }) => {
          await new Promise((resolve) => setImmediate(resolve))
          logger.warn(`order ${order.id}`)
          return order
        },
        { name: 'asked' },
      )
      .groupBy((order) => order.customer, { name: 'by-customer' })
      .count({ store: 'counts', name: 'counted' })
      .toStream({ name: 'told' })
      .to('totals', { value: serdes.number, name: 'written' }),
})
