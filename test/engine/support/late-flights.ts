/** Late flights per airport: in tumbling windows, told at every update, and in hopping ones, told when they close. */
import { type GroupedStream, hopping, serdes, type Topology, tumbling } from 'millrace'
import type { Flight } from '../../../examples/flights/app.ts'

/** Answers with the late flights by airport, for more. */
export function lateFlights(topology: Topology): GroupedStream<string, Flight> {
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
  return late
}
