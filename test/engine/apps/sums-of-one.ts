/** Sums of one topic; `sums-of-two.ts` is the next version. */
import { defineApp, serdes } from 'millrace'

const numbers = { key: serdes.string, value: serdes.json<number>() }

export default defineApp({
  applicationId: 'sums',
  build(topology) {
    topology
      .stream('one', numbers)
      .groupByKey()
      .reduce((a, b) => a + b, { store: 'sums' })
      .toStream()
      .to('told', numbers)
  },
})
