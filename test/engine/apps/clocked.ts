/** A processor that the wall clock calls, beside an input, some records of which end their lane, until a time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, keyValueStore, type Serde, serdes } from 'millrace'

const asNumbers = { key: serdes.string, value: serdes.json<number>() }
const counts = keyValueStore('counts', { key: serdes.string, value: serdes.number as Serde<number> })

export default defineApp({
  applicationId: 'clocked',
  build(topology) {
    topology
      .stream('in', asNumbers)
      .process<string, number>(
        (context) => {
          const rows = context.store(counts)
          const count = (key: string): number => {
            const next = (rows.get(key) ?? -1) + 1
            rows.put(key, next)
            return next
          }
          context.schedule('20ms', 'wall-clock', () => context.forward('tick', count('tick')))
          return async (until, key) => {
            if (key === 'fails' && Date.now() < until) {
              await sleep(300)
              setImmediate(() => {
                throw new Error('until then')
              })
              await sleep(60_000)
            }
            await context.forward(key, count(key))
          }
        },
        { stores: [counts], ...asNumbers },
      )
      .to('out', asNumbers)
  },
})
