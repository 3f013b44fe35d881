/** Late flights per airport, in windows. */
import { defineApp } from 'millrace'
import { lateFlights } from '../support/late-flights.ts'

export default defineApp({
  applicationId: 'late-windows',
  build(topology) {
    lateFlights(topology)
  },
})
