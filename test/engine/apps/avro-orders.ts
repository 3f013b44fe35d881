/** Orders in Avro by customer, counted and summed up in a store; what is written is Avro too. */
import { defineApp } from '../../../src/index.ts'
import { avro } from '../../../src/serde/registry/index.ts'
import { orderSchema, totalSchema } from './avro-schemas.ts'

interface Order {
  readonly id: number
  readonly amount: number
}

interface Total {
  readonly orders: number
  readonly amount: number
  readonly last: number
}

export default defineApp({
  applicationId: 'avro-orders',
  build(topology) {
    const total = avro<Total>(totalSchema, { register: 'on-start' })
    topology
      .stream('orders', { value: avro<Order>(orderSchema) })
      .groupByKey()
      .aggregate<Total>(
        () => ({ orders: 0, amount: 0, last: -1 }),
        (sum, { id, amount }) => ({ orders: sum.orders + 1, amount: sum.amount + amount, last: id }),
        { store: { name: 'totals', value: total } },
      )
      .toStream()
      .to('totals', { value: total })
  },
})
