/** Counts by key, for several processes that share the keys. */
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'shared-counts',
  build(topology) {
    topology
      .stream('shared-events', { key: serdes.string, value: serdes.json<object>() })
      .groupByKey()
      .count({ store: 'counts' })
  },
})
