/** Windows with a grace that the address says. */
import { defineApp, serdes, tumbling } from 'millrace'

const grace = new URL(import.meta.url).searchParams.get('grace') === '9s' ? '9s' : '0s'

export default defineApp({
  applicationId: 'graced',
  build(topology) {
    topology
      .stream('in', { key: serdes.string, value: serdes.json<number>() })
      .groupByKey()
      .windowedBy(tumbling('10s', { grace }))
      .count({ store: 'windows' })
      .toStream()
      .selectKey((_count, { key }) => key, { key: serdes.string })
      .to('out')
  },
})
