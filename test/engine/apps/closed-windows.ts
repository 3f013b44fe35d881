/** Windows behind a re-key that tell nothing until they close. */
import { defineApp, serdes, tumbling } from 'millrace'

export default defineApp({
  applicationId: 'closed-windows',
  build(topology) {
    topology
      .stream('visits', { key: serdes.string, value: serdes.json<{ page: string }>() })
      .groupBy(({ page }) => page)
      .windowedBy(tumbling('10s'), { emit: 'on-close' })
      .count()
      .toStream()
      .map((count, { key }) => [key, count])
      .to('counts', { key: serdes.string, value: serdes.json<number>() })
  },
})
