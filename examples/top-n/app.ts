/** The three airports of each day whose flights lost the most minutes: counted by airport, then ranked by day. */
import { defineApp, serdes, tumbling } from 'millrace'
import type { Departure } from '../datasets.ts'

export const best = 3

export interface Place {
  readonly airport: string
  readonly minutes: number
}

/** The most minutes first; of equals the first by name. */
export function ranked(places: readonly Place[]): Place[] {
  return places.toSorted((a, b) => b.minutes - a.minutes || (a.airport < b.airport ? -1 : 1)).slice(0, best)
}

export default defineApp({
  applicationId: 'top-n',
  build(topology) {
    topology
      .stream('departures', { key: serdes.string, value: serdes.json<Departure>() })
      .filter((flight) => flight.delay > 0)
      .groupByKey()
      .windowedBy(tumbling('1d', { grace: '0s' }), { emit: 'on-close' })
      .aggregate(
        () => 0,
        (minutes, { delay }) => minutes + delay,
        { store: { name: 'minutes', value: serdes.number } },
      )
      .toStream()
      .map(
        (minutes, { key, start }): [string, Place] => [
          new Date(start).toISOString().slice(0, 10),
          { airport: key, minutes: minutes ?? 0 },
        ],
        { key: serdes.string, value: serdes.json<Place>() },
      )
      .groupByKey()
      .aggregate<Place[]>(
        () => [],
        (places, place) => ranked([...places, place]),
        { store: 'ranking' },
      )
      .toStream()
      .to('ranking')
  },
})
