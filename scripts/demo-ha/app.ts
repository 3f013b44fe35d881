/** What the demo runs: for each sensor, how many readings came and what they add up to. */
import { defineApp, serdes } from 'millrace'

interface Total {
  readonly readings: number
  readonly sum: number
}

export default defineApp({
  applicationId: 'demo-ha',
  build(topology) {
    topology
      .stream('readings', { key: serdes.string, value: serdes.json<number>() })
      .groupByKey()
      .aggregate(
        (): Total => ({ readings: 0, sum: 0 }),
        ({ readings, sum }, value) => ({ readings: readings + 1, sum: sum + value }),
        {
          store: 'totals',
        },
      )
      .toStream()
      .to('totals')
  },
})
