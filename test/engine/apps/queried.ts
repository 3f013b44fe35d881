/** One store of each kind, to be asked while the application runs. */
import { defineApp, serdes, session, tumbling } from 'millrace'

export default defineApp({
  applicationId: 'queried',
  build(topology) {
    const clicks = topology.stream('clicks', { key: serdes.string, value: serdes.json<number>() })
    clicks.groupByKey().count({ store: 'counts' })
    clicks
      .groupByKey()
      .windowedBy(tumbling('10s', { grace: '1d' }))
      .reduce((sum, n) => sum + n, { store: 'windows' })
    clicks
      .groupByKey()
      .windowedBy(session('5s', { grace: '1d' }))
      .count({ store: 'sessions' })
    topology.table('prices', { key: serdes.string, value: serdes.json<number>(), store: { name: 'prices' } })
    topology.globalTable('names', { key: serdes.string, value: serdes.json<string>(), store: 'names' })
  },
})
