import { defineApp, serdes } from 'millrace'

export interface Order {
  readonly customer: string
  readonly amount: number
}

/** Passes large orders on, and keeps a total for each customer. */
export default defineApp({
  applicationId: 'millrace-app',
  build(topology) {
    const orders = topology.stream('orders', { key: serdes.string, value: serdes.json<Order>() })
    orders.filter((order) => order.amount >= 1000).to('large-orders')
    orders
      .groupBy((order) => order.customer)
      .aggregate(
        () => 0,
        (total, order) => total + order.amount,
        { store: 'totals' },
      )
      .toStream()
      .to('totals')
  },
})
