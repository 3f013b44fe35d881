/** A processor that takes whatever its store throws for a row that is not there. */
import { defineApp, keyValueStore, serdes } from 'millrace'

const times = keyValueStore<string, number>('times', { key: serdes.string, value: serdes.count })

export default defineApp({
  applicationId: 'careless',
  build(topology) {
    topology.addStore(times)
    topology
      .stream('in', { key: serdes.string, value: serdes.json<number>() })
      .process<string, number>(
        (context) => {
          const store = context.store(times)
          const of = (key: string): number => {
            try {
              return store.get(key) ?? 0
            } catch {
              return 0
            }
          }
          return (_, key) => {
            store.put(key, of(key) + 1)
            return context.forward(key, of(key))
          }
        },
        { stores: [times] },
      )
      .to('out', { value: serdes.json<number>() })
  },
})
