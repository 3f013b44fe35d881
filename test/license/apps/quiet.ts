/** An application that does next to nothing: what is tested is the license around it. */
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'licensed',
  build(topology) {
    topology.stream('in', { key: serdes.string, value: serdes.string }).to('out')
  },
})
