/** Sums by window over every topic `in-…`: what comes behind the watermark is dropped, and misses in its sum. */
import { defineApp, serdes, tumbling } from 'millrace'

export default defineApp({
  applicationId: 'growing',
  build(topology) {
    topology
      .stream(/^in-.*$/, { key: serdes.string, value: serdes.json<number>() })
      .groupByKey()
      .windowedBy(tumbling('1m'))
      .reduce((sum, n) => sum + n, { store: 'sums' })
      .toStream()
      .map((sum, window) => [window.key, sum])
      .to('out', { key: serdes.string })
  },
})
