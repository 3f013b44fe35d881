/** Calls that are made again, of which some never come through. */
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'poison-calls',
  build(topology) {
    topology
      .stream('in', { key: serdes.string, value: serdes.json<number>() })
      .mapValues(
        async (n) => {
          if (n % 211 === 7) throw new Error('poison')
          return n
        },
        { breaker: { after: 4, pause: '2ms' } },
      )
      .to('out')
  },
})
