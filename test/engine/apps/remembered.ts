/** What tables and processors find of rows that are forgotten, where some records wait for a function. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, keyValueStore, serdes } from 'millrace'

interface Visit {
  readonly n: number
  readonly slow: number
}

const waited = (visit: Visit): Visit | Promise<Visit> => (visit.slow > 0 ? sleep(visit.slow).then(() => visit) : visit)
const asNumbers = { key: serdes.string, value: serdes.json<number>() }

export default defineApp({
  applicationId: 'remembered',
  build(topology) {
    const slowed = topology.stream('visits', { key: serdes.string, value: serdes.json<Visit>() }).mapValues(waited)
    const counts = slowed.groupByKey().count({ store: { name: 'counts', ttl: '10s' } })
    counts.toStream().to('counted', asNumbers)
    const last = keyValueStore('last', { key: serdes.string, value: serdes.number, ttl: '10s' })
    slowed
      .process<string, number>(
        (context) =>
          ({ n }, key) => {
            const before = context.store(last).get(key) ?? 0
            context.store(last).put(key, n)
            return context.forward(key, before)
          },
        { stores: [last] },
      )
      .to('before', asNumbers)
  },
})
