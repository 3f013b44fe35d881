/** Six branches of one stream, each of which fails on records of its own, at once or later. */
import { defineApp, type Serde, serdes } from 'millrace'

export interface Order {
  readonly n: number
  /** The branches that fail on it. */
  readonly fails: string
}

const asOrders = { key: serdes.string, value: serdes.json<Order>() }

const picky: Serde<Order> = {
  name: 'picky',
  serialize(order) {
    if (order.fails.includes('s')) throw new RangeError(`${order.n} does not fit`)
    return Buffer.from(JSON.stringify(order))
  },
  deserialize: (bytes) => JSON.parse(Buffer.from(bytes).toString()) as Order,
}

function check(order: Order, branch: string): Order {
  if (order.fails.includes(branch)) throw new RangeError(`${order.n} is wrong in ${branch}`)
  return order
}

export default defineApp({
  applicationId: 'failing-branches',
  build(topology) {
    const orders = topology.stream('orders', asOrders)
    orders.mapValues((order) => check(order, 'm')).to('mapped')
    orders
      .mapValues(async (order) => {
        await new Promise((resolve) => setTimeout(resolve, order.n % 3))
        return check(order, 'a')
      })
      .to('later')
    orders.to('picked', { value: picky })
    orders
      .flatMapValues((order) => [0, 1, 2].map((part) => ({ ...order, part })))
      .filter((order) => order.part !== 1 || check(order, 'f') === order)
      .to('parts')
    orders
      .process<string, Order>((context) => async (order, key) => {
        await context.forward(key, { ...order, fails: order.fails.replace('p', 'q') })
        await context.forward(key, order)
      })
      .mapValues((order) => check(order, 'p'))
      .to('forwarded')
    orders
      .groupBy((order) => `${order.n % 5}`, asOrders)
      .aggregate<number>(
        () => 0,
        (sum, order) => sum + check(order, 'g').n,
        { store: 'sums' },
      )
      .toStream()
      .to('sums', { value: serdes.json<number>() })
    orders.to('all')
  },
})
