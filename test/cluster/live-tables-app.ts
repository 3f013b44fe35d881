/** Orders with the price of their product, as they come and behind a re-key. */
import { defineApp, serdes } from 'millrace'

export const liveTopics = {
  prices: 'live-prices',
  orders: 'live-orders',
  customers: 'live-customers',
  priced: 'live-priced',
  pricedForCustomers: 'live-priced-for-customers',
}

export interface Order {
  readonly i: number
  readonly product: string
  readonly at: number
}

const key = serdes.string
const orders = { key, value: serdes.json<Order>() }
const priced = { key, value: serdes.json<{ i: number; behindPrice: number }>() }

export default defineApp({
  applicationId: 'live-tables',
  build(topology) {
    const prices = topology.table(liveTopics.prices, { key, value: serdes.json<{ at: number }>() })
    const behind = ({ i, at }: Order, price: { at: number } | null | undefined) => ({
      i,
      behindPrice: at - (price?.at ?? 0),
    })
    topology.stream(liveTopics.orders, orders).leftJoin(prices, behind, orders).to(liveTopics.priced, priced)
    topology
      .stream(liveTopics.customers, orders)
      .selectKey(({ product }) => product)
      .leftJoin(prices, behind, orders)
      .to(liveTopics.pricedForCustomers, priced)
  },
})
