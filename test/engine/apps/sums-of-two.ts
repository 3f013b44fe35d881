/** Sums of two topics: the next version of `sums-of-one.ts`. */
import { defineApp, serdes } from 'millrace'

const numbers = { key: serdes.string, value: serdes.json<number>() }

export default defineApp({
  applicationId: 'sums',
  build(topology) {
    topology
      .stream('one', numbers)
      .merge(topology.stream('two', numbers))
      .groupByKey()
      .reduce((a, b) => a + b, { store: 'sums' })
      .toStream()
      .to('told', numbers)
  },
})
