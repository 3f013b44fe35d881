import { defineApp, serdes, tumbling } from 'millrace'

export interface Flight {
  readonly origin: string
  readonly delay: number
}

/** Counts late flights by airport and hour. An hour is told once, ten minutes of event time after its end. */
export default defineApp({
  applicationId: 'millrace-app',
  build(topology) {
    topology
      .stream('flights', {
        value: serdes.json<Flight>(),
        // A partition that has had nothing for five seconds does not keep the hours of the others open.
        watermark: { maxOutOfOrderness: '10m', idleness: '5s' },
      })
      .filter((flight) => flight.delay > 15)
      .groupBy((flight) => flight.origin)
      .windowedBy(tumbling('1h'), { emit: 'on-close' })
      .count({ store: 'late-by-origin' })
      .toStream()
      .to('late-by-origin')
  },
})
