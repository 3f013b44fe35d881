/** State and timers per key behind a change of the key: repartitioned by themselves, and left where they are. */
import { defineApp, keyValueStore, type ProcessOptions, serdes } from 'millrace'

export default defineApp({
  applicationId: 'apart',
  build(topology) {
    const byMod = topology
      .stream('numbers', { key: serdes.string, value: serdes.json<number>() })
      .selectKey((value) => `m${value % 3}`, { key: serdes.string })
    const counted = (name: string, options: Pick<ProcessOptions, 'repartition'>) => {
      const counts = keyValueStore(`${name}-counts`, { key: serdes.string, value: serdes.json<number>() })
      byMod
        .processValues<number>(
          (context) => (_, key) => {
            const count = (context.store(counts).get(key) ?? 0) + 1
            context.store(counts).put(key, count)
            return context.forward(count)
          },
          { name, stores: [counts], ...options },
        )
        .to(name)
    }
    counted('together', {})
    counted('apart', { repartition: false })
    byMod
      .process<string, number>(
        (context) => ({
          process: (_, key, { timestamp }) => context.timers.set(key, timestamp + 1000),
          onTimer: (key, atMs) => context.forward(key, atMs),
        }),
        { name: 'timed', timers: true },
      )
      .to('timed')
  },
})
