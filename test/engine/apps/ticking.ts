/** Scheduled sources beside a topic: by interval, at once and later, and by cron; counted by key. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'ticking',
  build(topology) {
    const json = { key: serdes.string, value: serdes.json<number>() }
    const often = topology.scheduled('often', {
      every: '50ms',
      emit: ({ count }) => Array.from({ length: 4 }, (_, i) => ({ key: `often-${i}`, value: count })),
      ...json,
    })
    often.to('ticks')
    often.groupByKey().count({ store: 'ticks-by-key' }).toStream().to('tick-counts')
    topology
      .scheduled('later', {
        every: '80ms',
        emit: async ({ count, scheduledAt }) => {
          await sleep(20)
          return { key: 'later', value: count, timestamp: scheduledAt - 1 }
        },
        ...json,
      })
      .to('ticks')
    topology
      .scheduled('by-cron', { cron: '* * * * * *', emit: ({ count }) => ({ key: 'cron', value: count }), ...json })
      .to('ticks')
    topology.stream('others', json).to('ticks')
  },
})
