/** An asynchronous function as slow as its record says; tells when it began and ended. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, serdes } from 'millrace'

interface Call {
  readonly n: number
  readonly ms: number
}

const now = (): number => performance.timeOrigin + performance.now()

export default defineApp({
  applicationId: 'slow-calls',
  config: { 'lane.max-in-flight': 2000 },
  build(topology) {
    topology
      .stream('calls', { key: serdes.string, value: serdes.json<Call>() })
      .mapValues(async ({ n, ms }) => {
        const began = now()
        await sleep(ms)
        return { n, began, ended: now() }
      })
      .to('answers')
  },
})
