/** Fails where a record tells it to: when decoded, when processed (at once or later), when encoded. */
import { defineApp, type Serde, serdes } from 'millrace'

interface Order {
  readonly n: number
  readonly fault?: 'throws' | 'rejects' | 'unencodable' | 'aggregate'
}

const picky: Serde<Order> = {
  name: 'picky',
  serialize(order) {
    if (order.fault === 'unencodable') throw new RangeError(`order ${order.n} does not fit`)
    return Buffer.from(JSON.stringify(order))
  },
  deserialize: (bytes) => JSON.parse(Buffer.from(bytes).toString()) as Order,
}

export default defineApp({
  applicationId: 'faulty',
  build(topology) {
    const checked = topology
      .stream('orders', { key: serdes.string, value: serdes.json<Order>() })
      .mapValues((order) => {
        if (order.fault === 'throws') throw new RangeError(`order ${order.n} is wrong`)
        if (order.fault === 'rejects') return Promise.reject(new RangeError(`order ${order.n} is wrong later`))
        return order
      })
    checked.to('checked', { value: picky })
    checked.groupByKey().count({ store: 'orders-by-key' }).toStream().to('counts')
  },
})
