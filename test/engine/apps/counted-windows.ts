/** Clicks per key in windows of ten seconds that tell their final count. */
import { defineApp, serdes, tumbling } from 'millrace'

export default defineApp({
  applicationId: 'counted-windows',
  build(topology) {
    topology
      .stream('clicks', { key: serdes.string, value: serdes.json<{ page: string }>() })
      .groupByKey()
      .windowedBy(tumbling('10s'), { emit: 'on-close' })
      .count()
      .toStream()
      .map((count, windowed) => [windowed.key, { at: windowed.start, count }])
      .to('counts', { key: serdes.string, value: serdes.json() })
  },
})
