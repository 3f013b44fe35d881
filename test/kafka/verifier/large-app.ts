/** A store as large as its input: the newest value of every key. */
import { defineApp, serdes } from 'millrace'

const prefix = process.env.VERIFIER_PREFIX ?? 'large'

export default defineApp({
  applicationId: prefix,
  build(topology) {
    topology
      .stream(`${prefix}-in`, { key: serdes.string, value: serdes.bytes })
      .groupByKey()
      .reduce((_, value) => value, { store: 'newest' })
  },
})
