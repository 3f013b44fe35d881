/**
 * A backfill beside the live feed: years of history and today's records at once, without a day counted twice where they overlap. The
 * engine takes them in the order of event time, so history comes before what follows it.
 */
import { defineApp, keyValueStore, serdes } from 'millrace'
import type { Weather } from '../datasets.ts'

export interface Month {
  readonly days: number
  readonly sum: number
}

export default defineApp({
  applicationId: 'backfill',
  build(topology) {
    const source = { key: serdes.string, value: serdes.json<Weather>() }
    const days = keyValueStore<string, boolean>('days', { key: serdes.string, ttl: '60d' })
    topology
      .stream('history', source)
      .merge(topology.stream('live', source))
      .selectKey((day) => day.date, { key: serdes.string })
      .processValues<Weather>(
        (context) => {
          const seen = context.store(days)
          return (day, date) => {
            if (seen.get(date)) return
            seen.put(date, true)
            return context.forward(day)
          }
        },
        { stores: [days] },
      )
      .groupBy((day) => day.date.slice(0, 7), { key: serdes.string, value: serdes.json<Weather>() })
      .aggregate<Month>(
        () => ({ days: 0, sum: 0 }),
        ({ days, sum }, { highest }) => ({ days: days + 1, sum: Math.round((sum + highest) * 10) / 10 }),
        { store: 'months' },
      )
      .toStream()
      .to('months')
  },
})
