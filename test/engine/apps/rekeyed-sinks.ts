/** Orders by customer, told under other keys by what keeps no rows of these: sinks, and a processor without stores. */
import { defineApp, serdes } from 'millrace'

export interface Order {
  readonly product: string
  readonly partition: number
  /** Its place among the orders of its partition. */
  readonly nth: number
}

export default defineApp({
  applicationId: 'rekeyed-sinks',
  build(topology) {
    const orders = topology.stream('orders', { key: serdes.string, value: serdes.json<Order>() })
    const byProduct = orders.selectKey((order) => order.product)
    byProduct.to('selected')
    byProduct
      .filter(({ nth }) => nth % 2 === 0)
      .mapValues((order) => ({ ...order, isEven: true }))
      .to('filtered')
    orders.map((order) => [order.product, order]).to('mapped')
    orders.flatMap((order) => [[order.product, order]]).to('flat-mapped')
    orders
      .process<string, Order>((context) => (order) => void context.forward(order.product, order), { name: 'forward' })
      .to('forwarded')
    const [web, shops] = ['web-orders', 'shop-orders'].map((topic) =>
      topology.stream(topic, { key: serdes.string, value: serdes.json<Order>() }),
    ) as [typeof orders, typeof orders]
    web
      .merge(shops)
      .selectKey((order) => order.product)
      .to('merged')
    const kept = topology.stream('kept-orders', { key: serdes.string, value: serdes.json<Order>() })
    kept.groupByKey().count({ store: 'by-customer' })
    kept.selectKey((order) => order.product).to('beside-rows')
    byProduct.groupByKey().count({ store: 'counts' }).toStream().to('counts')
  },
})
