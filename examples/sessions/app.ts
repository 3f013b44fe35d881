/** Busy times of airports: departures at most six hours apart belong together. Each is told once, when it is over. */
import { defineApp, serdes, session } from 'millrace'
import type { Departure } from '../datasets.ts'

export interface Busy {
  readonly departures: number
  readonly minutesLate: number
}

export default defineApp({
  applicationId: 'sessions',
  build(topology) {
    topology
      .stream('departures', { key: serdes.string, value: serdes.json<Departure>() })
      .groupByKey()
      .windowedBy(session('6h', { grace: '0s' }), { emit: 'on-close' })
      .aggregate<Busy>(
        () => ({ departures: 0, minutesLate: 0 }),
        (busy, { delay }) => ({ departures: busy.departures + 1, minutesLate: busy.minutesLate + Math.max(0, delay) }),
        (a, b) => ({ departures: a.departures + b.departures, minutesLate: a.minutesLate + b.minutesLate }),
        { store: 'busy-times' },
      )
      .toStream()
      .filter((busy) => busy !== null && busy.departures >= 3)
      .to('busy-times')
  },
})
