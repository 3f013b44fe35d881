/** Stores that forget: windows, sessions, and rows with a time to live. */
import { defineApp, keyValueStore, serdes, session, tumbling } from 'millrace'

export default defineApp({
  applicationId: 'forgetful',
  build(topology) {
    const clicks = topology.stream('clicks', { key: serdes.string, value: serdes.json<number>() })
    clicks.groupByKey().windowedBy(tumbling('10s')).count({ store: 'windows' })
    clicks.groupByKey().windowedBy(session('5s')).count({ store: 'sessions' })
    const recent = keyValueStore('recent', { key: serdes.string, value: serdes.number, ttl: '10s' })
    clicks.process(
      (context) => (value, key) => {
        context.store(recent).put(key, value)
      },
      { stores: [recent] },
    )
  },
})
