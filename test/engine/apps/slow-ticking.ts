/** A scheduled source whose function takes longer than its interval. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, serdes } from 'millrace'

export interface Firing {
  readonly scheduledAt: number
  readonly called: number
  readonly answered: number
}

export default defineApp({
  applicationId: 'slow-ticking',
  build(topology) {
    const firings = { key: serdes.string, value: serdes.json<Firing>() }
    topology
      .scheduled('slow', {
        every: '100ms',
        emit: async ({ scheduledAt }) => {
          const called = Date.now()
          await sleep(500)
          return { key: 'slow', value: { scheduledAt, called, answered: Date.now() } }
        },
        ...firings,
      })
      .to('ticks')
    topology.stream('others', firings).to('ticks')
  },
})
