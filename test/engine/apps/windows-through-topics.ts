/** Windows behind a re-key, with the start of each in its key. */
import { defineApp, serdes, tumbling } from 'millrace'

export default defineApp({
  applicationId: 'windows-through-topics',
  build(topology) {
    topology
      .stream('numbers', { key: serdes.string, value: serdes.json<number>() })
      .groupBy((value) => `g${value % 3}`, { name: 'by-group', key: serdes.string })
      .windowedBy(tumbling('1s'))
      .count({ store: 'counts' })
      .toStream()
      .map((count, { key, start }) => [`${key}@${start}`, count], { key: serdes.string })
      .to('window-counts')
  },
})
