/** A function whose promise never settles for one record. */
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'never',
  build(topology) {
    topology
      .stream('questions', { key: serdes.string, value: serdes.json<string>() })
      .mapValues((value) => (value === 'unanswerable' ? new Promise<string>(() => undefined) : value))
      .to('answers')
  },
})
