/** Orders with the price of the product they name, as updates that nobody keeps. */
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'told-prices',
  build(topology) {
    const prices = topology.table('prices', { key: serdes.string, value: serdes.json<number>() })
    topology
      .table('orders', { key: serdes.string, value: serdes.json<{ product: string }>() })
      .join(prices, (_order, price) => price, { on: (order) => order.product })
      .toStream()
      .to('priced')
  },
})
