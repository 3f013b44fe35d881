/** Orders of customers, by product: the price of their time, their number in windows that are over, their number in all. */
import { defineApp, serdes, tumbling } from 'millrace'

export const rollingTopics = {
  orders: 'orders',
  prices: 'prices',
  priced: 'priced',
  windows: 'windows',
  totals: 'totals',
}
export const windowMs = 10_000

export interface Order {
  readonly i: number
  readonly product: string
  readonly at: number
}

const key = serdes.string
const orders = { key, value: serdes.json<Order>() }
const counts = { key, value: serdes.json<number>() }

export default defineApp({
  applicationId: 'rolling',
  build(topology) {
    const prices = topology.table(rollingTopics.prices, { key, value: serdes.json<{ at: number }>() })
    const ofProducts = topology.stream(rollingTopics.orders, orders).selectKey(({ product }) => product)
    ofProducts
      .leftJoin(prices, ({ i, at }, price) => ({ i, behindPrice: at - (price?.at ?? 0) }), orders)
      .to(rollingTopics.priced, { key, value: serdes.json<{ i: number; behindPrice: number }>() })
    const grouped = ofProducts.groupByKey(orders)
    grouped
      .windowedBy(tumbling(windowMs, { grace: '2s' }), { emit: 'on-close' })
      .count()
      .toStream()
      .map((count, { key: product, start }) => [`${product}@${start}`, count])
      .to(rollingTopics.windows, counts)
    grouped.count().toStream().to(rollingTopics.totals, counts)
  },
})
