/**
 * Orders with the name of their customer, from a global table; and the sum of all limits, from a table whose source topic
 * may serve as its changelog. A row that is known too early shows in the sum: it is taken out again before it went in.
 */
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'enriched',
  build(topology) {
    const names = topology.globalTable('names', { key: serdes.string, value: serdes.json<string>() })
    topology
      .stream('orders', { key: serdes.string, value: serdes.json<number>() })
      .join(names, (amount, name) => `${name}: ${amount}`, { on: (_, customer) => customer })
      .to('enriched', { value: serdes.json<string>() })
    topology
      .table('limits', { key: serdes.string, value: serdes.json<number>() })
      .groupBy((limit) => ['all', limit] as const, { key: serdes.string, value: serdes.json<number>() })
      .reduce(
        (sum, limit) => sum + limit,
        (sum, limit) => sum - limit,
        { store: 'sum' },
      )
      .toStream()
      .to('sum')
  },
})
