/** Totals that a timer tells under another key, though no record has come. */
import { defineApp, keyValueStore, serdes } from 'millrace'

const numbers = { key: serdes.string, value: serdes.json<number>() }

export default defineApp({
  applicationId: 'told-totals',
  build(topology) {
    const totals = keyValueStore('totals', numbers)
    topology
      .stream('in', { ...numbers, watermark: { idleness: '700ms' } })
      .process<string, number>(
        (context) => {
          const store = context.store(totals)
          context.schedule('10s', 'event-time', () => {
            for (const [key, total] of store.all()) context.forward(key, total)
          })
          return { process: (_value, key) => void store.put(key, (store.get(key) ?? 0) + 1) }
        },
        { stores: [totals], ...numbers },
      )
      .selectKey((_total, key) => `all-${key}`)
      .repartition(numbers)
      .to('out', numbers)
  },
})
