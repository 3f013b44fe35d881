/** The next build of `running-sum`: the same, and one store more. */
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'running-sum',
  build(topology) {
    const numbers = topology.stream('numbers', { key: serdes.string, value: serdes.json<number>() })
    numbers
      .groupByKey()
      .aggregate(
        () => [] as number[],
        (seen, n) => [...seen, n],
        { store: 'seen' },
      )
      .toStream()
      .to('seen')
    numbers
      .groupBy((n) => `mod-${n % 3}`)
      .reduce((sum, n) => sum + n, { store: 'sums' })
      .toStream()
      .to('sums')
    numbers
      .groupByKey()
      .aggregate(
        () => [] as number[],
        (since, n) => [...since, n],
        { store: 'since-the-update' },
      )
      .toStream()
      .to('since-the-update')
  },
})
