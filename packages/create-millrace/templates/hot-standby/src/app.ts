import { defineApp, serdes } from 'millrace'

export interface Total {
  readonly readings: number
  readonly sum: number
}

/** For each sensor, how many readings came and what they add up to: what is lost or counts twice shows. */
export default defineApp({
  applicationId: 'millrace-app',
  build(topology) {
    topology
      .stream('readings', { key: serdes.string, value: serdes.json<number>() })
      .groupByKey()
      .aggregate<Total>(
        () => ({ readings: 0, sum: 0 }),
        ({ readings, sum }, value) => ({ readings: readings + 1, sum: sum + value }),
        { store: 'totals' },
      )
      .toStream()
      .to('totals')
  },
})
