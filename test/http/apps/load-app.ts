/** Keeps every lane busy: parse, re-key, count. */
import { defineApp, serdes } from 'millrace'

interface Hit {
  readonly page: number
}

export default defineApp({
  applicationId: 'load',
  build(topology) {
    topology
      .stream('hits', { key: serdes.string, value: serdes.json<Hit>() })
      .filter((hit) => hit.page >= 0)
      .groupBy((hit) => String(hit.page % 1000))
      .count({ store: 'per-page' })
      .toStream()
      .to('pages')
  },
})
