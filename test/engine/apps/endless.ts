/** Counts, and never comes back from the record that says so. */
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'endless',
  build(topology) {
    topology
      .stream('steps', { key: serdes.string, value: serdes.json<string>() })
      .peek((value) => {
        while (value === 'for ever');
      })
      .groupByKey()
      .count({ store: 'steps-by-key' })
      .toStream()
      .to('counted')
  },
})
