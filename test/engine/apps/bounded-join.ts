/** A join whose function never answers for one record, and is given up after a time. */
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'bounded-join',
  build(topology) {
    const numbers = { key: serdes.string, value: serdes.json<number>() }
    topology
      .stream('left', numbers)
      .leftJoin(
        topology.stream('right', numbers),
        (left) => (left === 1 ? Promise.withResolvers<number>().promise : left),
        { within: '5s', timeout: '100ms' },
      )
      .to('out', numbers)
  },
})
