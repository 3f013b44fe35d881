/** How many orders there are of each product, and what they come to: orders change their product, and late news of them too. */
import { defineApp, serdes } from 'millrace'

interface Order {
  readonly product: string
  readonly amount: number
}

const asOrders = { key: serdes.string, value: serdes.json<Order>() }

export default defineApp({
  applicationId: 'regrouped',
  build(topology) {
    const orders = topology.table('orders', { ...asOrders, watermark: { maxOutOfOrderness: '1m' } })
    const shops = topology.table('shops', { ...asOrders, watermark: { maxOutOfOrderness: '1m' } })
    const count = (table: typeof orders, name: string): void =>
      table
        .groupBy((order) => [order.product, order] as const, { ...asOrders, name })
        .count({ store: name })
        .toStream()
        .to(name, { value: serdes.json<number>() })
    count(orders, 'counted')
    const held = orders.suppress({ until: '1s' })
    count(held, 'held')
    count(
      orders.filter(({ amount }) => amount > 0).mapValues((order) => ({ ...order, amount: 1 })),
      'large',
    )
    const byShop = ({ product, amount }: Order, shop: Order | null): Order => ({
      product: `${product}-${shop?.product ?? ''}`,
      amount,
    })
    count(orders.leftJoin(shops, byShop), 'by-shop')
    count(held.leftJoin(shops, byShop), 'held-by-shop')
  },
})
