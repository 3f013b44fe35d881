/** What is counted is no longer what came: the value is another one by then. */
import { defineApp, serdes, tumbling } from 'millrace'

export interface Reading {
  readonly celsius: number
}

export default defineApp({
  applicationId: 'changed',
  build(topology) {
    topology
      .stream('readings', { key: serdes.string, value: serdes.json<Reading>() })
      .mapValues(({ celsius }) => ({ fahrenheit: celsius * 1.8 + 32 }))
      .groupByKey()
      .windowedBy(tumbling('1m'))
      .count({ store: 'per-minute' })
      .toStream()
      .to('counted')
  },
})
