/** Each earthquake once, however often its feed is read: what was seen within a day is left out. */
import { defineApp, keyValueStore, serdes } from 'millrace'
import type { Shock } from '../datasets.ts'

export default defineApp({
  applicationId: 'deduplication',
  build(topology) {
    const seen = keyValueStore<string, number>('seen', { key: serdes.string, value: serdes.number, ttl: '1d' })
    topology
      .stream('feed', { key: serdes.string, value: serdes.json<Shock>() })
      .processValues<Shock>(
        (context) => {
          const known = context.store(seen)
          return (shock, id, { timestamp }) => {
            if (known.get(id) !== undefined) return
            known.put(id, timestamp)
            return context.forward(shock)
          }
        },
        { stores: [seen] },
      )
      .to('shocks')
  },
})
