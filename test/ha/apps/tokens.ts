/** Tells under which token each record was processed. */
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'tokens',
  build(topology) {
    topology
      .stream('numbers', { key: serdes.string, value: serdes.json<number>() })
      .processValues<number>((context) => () => void context.forward(context.fencingToken()))
      .to('tokens', { value: serdes.json<number>() })
  },
})
