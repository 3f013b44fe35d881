/** Two topics in one alignment group, out of step by at most a minute. */
import { defineApp, serdes } from 'millrace'

const source = {
  key: serdes.string,
  value: serdes.json<number>(),
  watermark: { idleness: '3s', alignment: { group: 'feeds', maxDrift: '1m' } },
}

export default defineApp({
  applicationId: 'aligned',
  build(topology) {
    topology.stream('fast', source).to('out')
    topology.stream('slow', source).to('out')
  },
})
