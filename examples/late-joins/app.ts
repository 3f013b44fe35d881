/** Departures with their arrivals, which may be told hours late and in any order. What has not landed after a day is told without. */
import { defineApp, serdes } from 'millrace'
import type { Departure } from '../datasets.ts'

export interface Arrival {
  readonly at: number
}

export interface Trip {
  readonly id: string
  readonly landed: boolean
}

export default defineApp({
  applicationId: 'late-joins',
  build(topology) {
    const landings = topology.stream('arrivals', {
      key: serdes.string,
      value: serdes.json<Arrival>(),
      watermark: { maxOutOfOrderness: '3h' },
    })
    topology
      .stream('departures', { key: serdes.string, value: serdes.json<Departure>() })
      .leftJoin(
        landings,
        (flight, landing): Trip => ({ id: flight.id, landed: landing !== null && landing !== undefined }),
        { within: { before: '0s', after: '1d' }, grace: '3h' },
      )
      .to('trips')
  },
})
