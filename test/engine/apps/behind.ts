/** Counts by a part of the value: records of all processes meet behind the topic. */
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'behind',
  build(topology) {
    topology
      .stream('in', { key: serdes.string, value: serdes.json<{ group: string }>() })
      .groupBy(({ group }) => group)
      .count({ store: 'counts' })
      .toStream()
      .to('out')
  },
})
