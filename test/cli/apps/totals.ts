import { defineApp, serdes } from 'millrace'

/** Adds up amounts per key, and passes every record on. */
export default defineApp({
  applicationId: 'totals',
  build(topology) {
    const amounts = topology.stream('amounts', { key: serdes.string, value: serdes.json<number>() })
    amounts.to('passed')
    amounts
      .groupByKey()
      .reduce((total, amount) => total + amount, { store: 'totals' })
      .toStream()
      .to('totals')
  },
})
