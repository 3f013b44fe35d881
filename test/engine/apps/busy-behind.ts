/** A function that works for as long as its record says, behind one that only waits. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'busy-behind',
  build(topology) {
    topology
      .stream('work', { key: serdes.string, value: serdes.json<number>() })
      .mapValues(async (ms) => {
        await sleep(1)
        return ms
      })
      .mapValues((ms) => {
        const began = performance.now()
        while (performance.now() - began < ms) Math.random()
        return performance.now() - began
      })
      .to('worked')
  },
})
