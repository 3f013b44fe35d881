/** Late flights per airport: in tumbling windows, told at every update, and in hopping ones, told when they close. */
import { defineApp, hopping, serdes, tumbling } from 'millrace'
import type { Flight } from '../../../examples/flights/app.ts'

export default defineApp({
  applicationId: 'late-windows',
  build(topology) {
    const late = topology
      .stream('flights', {
        key: serdes.string,
        value: serdes.json<Flight>(),
        watermark: { maxOutOfOrderness: '10m' },
      })
      .filter((flight) => flight.delay > 15)
      .groupBy((flight) => flight.origin)
    late
      .windowedBy(tumbling('1h', { grace: '10m' }))
      .count({ store: 'late-tumbling' })
      .toStream()
      .to('late-tumbling')
    late
      .windowedBy(hopping('1h', '15m', { grace: '10m' }), { emit: 'on-close' })
      .count({ store: 'late-hopping' })
      .toStream()
      .to('late-hopping')
  },
})
