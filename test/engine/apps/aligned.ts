/** Two sources that are to be read side by side in event time, no more than ten seconds apart. */
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'aligned',
  build(topology) {
    const settings = {
      key: serdes.string,
      value: serdes.json<number>(),
      watermark: { alignment: { group: 'both', maxDrift: '10s' } },
    }
    topology.stream('fast', settings).to('fast-out')
    topology.stream('slow', settings).to('slow-out')
  },
})
