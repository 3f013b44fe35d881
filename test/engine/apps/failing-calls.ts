/** Asks a neighbour who does not answer for some records, again and again. */
import { defineApp, serdes } from 'millrace'

interface Question {
  readonly do?: 'throw'
}

export default defineApp({
  applicationId: 'failing-calls',
  build(topology) {
    topology
      .stream('asks', { key: serdes.string, value: serdes.json<Question>() })
      .mapValues(
        async function askNeighbour(value) {
          if (value.do === 'throw') throw new RangeError('nobody answers')
          return value
        },
        { breaker: { after: 3, pause: '100ms' } },
      )
      .to('asked')
  },
})
