/** Orders in Avro that carry their own time; a global table of names in Avro beside them. */
import { defineApp } from '../../../src/index.ts'
import { avro } from '../../../src/serde/registry/index.ts'
import { orderSchema } from './avro-schemas.ts'

interface Order {
  readonly id: number
  readonly amount: number
}

export default defineApp({
  applicationId: 'avro-timed',
  build(topology) {
    const value = avro<Order>(orderSchema, { register: 'on-start' })
    const names = topology.globalTable('names', { value, store: 'names' })
    topology
      .stream('orders', { value: avro<Order>(orderSchema), timestamp: ({ id }) => 1_600_000_000_000 + id })
      .join(names, ({ id }, name) => ({ id, name: name.amount }), { on: (_, key) => key })
      .to('timed')
  },
})
