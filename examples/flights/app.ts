/**
 * Late flights per airport and hour, with the airport's name.
 *
 * The airports are a table, the flights a stream; both are keyed by the airport's code, so a flight finds its airport in
 * the same partition. A window's result is told once, when it closes.
 */
import { defineApp, serdes, tumbling } from 'millrace'

export interface Flight {
  readonly origin: string
  readonly destination: string
  /** Minutes behind schedule; negative ahead of it. */
  readonly delay: number
  /** Miles. */
  readonly distance: number
}

export interface Airport {
  readonly name: string
  readonly city: string
  readonly state: string
}

export interface LateHour {
  readonly airport: string
  readonly flights: number
  /** Minutes of all delays together. */
  readonly minutes: number
}

/** From how many minutes on a flight is late. */
export const lateFromMinutes = 15

const noFlights: LateHour = { airport: '', flights: 0, minutes: 0 }

export default defineApp({
  applicationId: 'late-flights',
  build(topology) {
    const airports = topology.table('airports', {
      key: serdes.string,
      value: serdes.json<Airport>(),
      // Airports come once and are quiet from then on: they must not hold the clock of the flights back.
      watermark: { idleness: '1s' },
    })
    topology
      .stream('flights', {
        key: serdes.string,
        value: serdes.json<Flight>(),
        watermark: { maxOutOfOrderness: '10m' },
      })
      .filter((flight) => flight.delay > lateFromMinutes)
      .leftJoin(airports, (flight, airport, code) => ({
        airport: airport ? `${airport.name}, ${airport.city}` : code,
        delay: flight.delay,
      }))
      .groupByKey()
      .windowedBy(tumbling('1h', { grace: '10m' }), { emit: 'on-close' })
      .aggregate(
        () => noFlights,
        (hour, { airport, delay }) => ({ airport, flights: hour.flights + 1, minutes: hour.minutes + delay }),
        { store: 'late-by-hour' },
      )
      .toStream()
      .to('late-by-hour')
  },
})
