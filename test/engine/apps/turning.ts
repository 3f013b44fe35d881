/** A function that is quick with most records and blocks its lane for a while with some, and never comes back from one. */
import { defineApp, serdes } from 'millrace'

const pause = new Int32Array(new SharedArrayBuffer(4))

export default defineApp({
  applicationId: 'turning',
  build(topology) {
    topology
      .stream('steps', { key: serdes.string, value: serdes.json<{ readonly ms: number }>() })
      .mapValues((step) => {
        if (step.ms > 0) Atomics.wait(pause, 0, 0, step.ms)
        return step
      })
      .to('walked')
  },
})
