/** A function that keeps its lane at work for as long as its record says, and tells when it began and ended. */
import { defineApp, serdes } from 'millrace'

interface Call {
  readonly n: number
  readonly ms: number
}

const now = (): number => performance.timeOrigin + performance.now()

export default defineApp({
  applicationId: 'costly',
  build(topology) {
    topology
      .stream('calls', { key: serdes.string, value: serdes.json<Call>() })
      .mapValues(({ n, ms }) => {
        const began = now()
        while (now() < began + ms);
        return { n, began, ended: now() }
      })
      .to('answers')
  },
})
