/** Late flights per airport, in windows, and in sessions that are told when they close. */
import { defineApp, session } from 'millrace'
import { lateFlights } from '../support/late-flights.ts'

export default defineApp({
  applicationId: 'late-sessions',
  build(topology) {
    lateFlights(topology)
      .windowedBy(session('20m', { grace: '10m' }), { emit: 'on-close' })
      .count({ store: 'late-sessions' })
      .toStream()
      .to('late-sessions')
  },
})
