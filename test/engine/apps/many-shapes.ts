/** Several topics, a pattern, and the rows of a global table. */
import { defineApp, serdes } from 'millrace'

interface Sale {
  readonly amount: number
  readonly country?: string
}

export default defineApp({
  applicationId: 'shapes',
  build(topology) {
    const settings = { key: serdes.string, value: serdes.json<Sale>() }
    topology
      .stream(['sales-a', 'sales-b'], settings)
      .groupByKey()
      .aggregate(
        () => 0,
        (sum, sale) => sum + sale.amount,
        { store: 'by-key' },
      )
      .toStream()
      .to('both')
    topology
      .stream(/region-.*/, settings)
      .mapValues((sale, _key, record) => ({ ...sale, from: record.topic }))
      .to('regions')
    const countries = topology.globalTable('countries', { key: serdes.string, value: serdes.json<string>() })
    topology
      .stream('orders', settings)
      .join(countries, (sale, name) => `${name}: ${sale.amount}`, { on: (sale) => sale.country ?? null })
      .to('named')
  },
})
