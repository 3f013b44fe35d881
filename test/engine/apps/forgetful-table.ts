/** A table whose rows have a time to live; with optimization its topic is its changelog. */
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'forgetful-table',
  build(topology) {
    topology.table('prices', {
      key: serdes.string,
      value: serdes.json<number>(),
      store: { name: 'prices', ttl: '10s' },
    })
  },
})
