/** Windows that close while nothing comes, and a store that forgets. */
import { defineApp, keyValueStore, serdes, tumbling } from 'millrace'

export default defineApp({
  applicationId: 'quiet-and-forgetful',
  build: (topology) => {
    topology
      .stream('clicks', { key: serdes.string, value: serdes.json<number>() })
      .groupByKey()
      .windowedBy(tumbling('1s', { closeAfterIdle: '100ms' }), { emit: 'on-close' })
      .count()
      .toStream({ key: (_count, window) => window.key })
      .to('per-second')
    const seen = keyValueStore('seen', { key: serdes.string, value: serdes.json<number>(), ttl: '1m' })
    topology
      .stream('visits', { key: serdes.string, value: serdes.json<number>() })
      .process<string, number>(
        (context) => (visit, key, record) => {
          const store = context.store(seen)
          if (store.get(key) !== undefined) return
          store.put(key, record.timestamp)
          return context.forward(key, visit)
        },
        { stores: [seen] },
      )
      .to('first-visits')
  },
})
