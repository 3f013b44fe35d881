/** All records under one key, at work on which takes long: one lane hands over far more quickly than the other one can do. */
import { defineApp, serdes } from 'millrace'

/** Keeps the lane busy, as a function of the application that computes something would. */
function work(milliseconds: number): void {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

export default defineApp({
  applicationId: 'one-key',
  build(topology) {
    topology
      .stream('many', { key: serdes.string, value: serdes.string })
      .groupBy(() => 'one', { key: serdes.string })
      .aggregate(
        () => 0,
        (bytes, text) => {
          work(0.1)
          return bytes + text.length
        },
        { store: { name: 'sum', value: serdes.count } },
      )
      .toStream()
      .to('sums')
  },
})
