/** A build of `running-sum` that keeps one of its stores in another form: it must never go on with the rows that are there. */
import { defineApp, serdes, tumbling } from 'millrace'

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
      .windowedBy(tumbling('1m'))
      .reduce((sum, n) => sum + n, { store: 'sums' })
      .toStream()
      .to('sums')
  },
})
