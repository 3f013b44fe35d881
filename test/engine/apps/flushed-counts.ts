/** Counts in a store that schedules tell and take out, row after row, beside functions of which some take their time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, keyValueStore, type Serde, serdes } from 'millrace'

const asNumbers = { key: serdes.string, value: serdes.json<number>() }

function counts(name: string): ReturnType<typeof keyValueStore<string, number>> {
  return keyValueStore(name, { key: serdes.string, value: serdes.number as Serde<number> })
}

export default defineApp({
  applicationId: 'flushed-counts',
  build(topology) {
    const looked = topology
      .stream('in', { ...asNumbers, watermark: { maxOutOfOrderness: '1s' } })
      .mapValues(async (n) => {
        if (n % 50 === 0) await sleep(1)
        return n
      })
    for (const [clock, interval, output] of [
      ['event-time', '1s', 'by-event-time'],
      ['wall-clock', '5ms', 'by-clock'],
    ] as const) {
      const store = counts(`${output}-counts`)
      looked
        .process<string, number>(
          (context) => {
            const rows = context.store(store)
            context.schedule(interval, clock, async () => {
              for (const [key, count] of rows.all()) {
                await context.forward(key, count)
                rows.delete(key)
              }
            })
            return async (n, key) => {
              const count = rows.get(key) ?? 0
              await (n % 70 === 0 ? sleep(1) : null)
              rows.put(key, count + 1)
            }
          },
          { stores: [store], ...asNumbers },
        )
        .mapValues(async (count) => count)
        .to(output, asNumbers)
    }
  },
})
