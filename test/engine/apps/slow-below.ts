/** All records come to one key, and only there, on one of the lanes, to a function that takes its time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'slow-below',
  build(topology) {
    const n = { key: serdes.string, value: serdes.json<number>() }
    topology
      .stream('calls', n)
      .selectKey(() => 'one')
      .repartition(n)
      .mapValues(async (value) => {
        await sleep(200)
        return value
      })
      .to('answers')
  },
})
