/** An order that is not paid in half an hour is given up; and beside that, in the same task, each record is looked up. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, serdes } from 'millrace'

interface Step {
  readonly what: 'ordered' | 'paid'
  readonly slowMs: number
}

const asSteps = { key: serdes.string, value: serdes.json<Step>() }
const text = { key: serdes.string, value: serdes.string }

export default defineApp({
  applicationId: 'overtaken-timers',
  build(topology) {
    // Behind a repartition the heads of all partitions wait for one another: event time is the same in every run.
    const steps = topology.stream('steps', asSteps).repartition(asSteps)
    steps
      .mapValues(async ({ what, slowMs }): Promise<string> => {
        await sleep(slowMs)
        return what
      })
      .to('looked-up', text)
    steps
      .process<string, string>(
        (context) => ({
          process: ({ what }, key, { timestamp }) => {
            if (what === 'ordered') return context.timers.set(key, timestamp + 30 * 60_000)
            context.timers.delete(key)
            return context.forward(key, 'paid')
          },
          onTimer: (key) => context.forward(key, 'given up'),
        }),
        { timers: true, ...text },
      )
      .to('told', text)
    steps
      .groupByKey()
      .reduce((_, step) => step)
      .suppress({ until: '15m' })
      .toStream()
      .mapValues(({ what }): string => what)
      .to('settled', text)
  },
})
