/** Records may come out of order by ten seconds. */
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'late',
  build(topology) {
    const watermark = { maxOutOfOrderness: '10s' } as const
    topology.stream('late', { key: serdes.string, value: serdes.json<number>(), watermark }).to('out')
  },
})
