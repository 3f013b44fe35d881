/** The name of the store differs from thread to thread. */
import { threadId } from 'node:worker_threads'
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'by-chance',
  build(topology) {
    topology
      .stream('numbers', { key: serdes.string, value: serdes.json<number>() })
      .groupByKey()
      .count({ store: `counts-${threadId}` })
      .toStream()
      .to('counts')
  },
})
