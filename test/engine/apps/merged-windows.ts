/** Clicks and views per key, of two topics, in windows of ten seconds that tell their final count. */
import { defineApp, serdes, tumbling } from 'millrace'

export default defineApp({
  applicationId: 'merged-windows',
  build(topology) {
    const source = { key: serdes.string, value: serdes.json<{ page: string }>() }
    topology
      .stream('clicks', source)
      .merge(topology.stream('views', source))
      .groupByKey()
      .windowedBy(tumbling('10s'), { emit: 'on-close' })
      .count()
      .toStream()
      .map((count, windowed) => [windowed.key, { at: windowed.start, count }])
      .to('counts', { key: serdes.string, value: serdes.json() })
  },
})
