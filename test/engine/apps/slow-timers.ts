/** Timers and functions that take their time, and behind them one key for all: records have to come to it in their order. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, serdes } from 'millrace'

interface Step {
  readonly n: number
  /** Sets a timer of the record's key. */
  readonly timerAt?: number
  readonly slowMs?: number
}

const asSteps = { key: serdes.string, value: serdes.json<Step>() }

export default defineApp({
  applicationId: 'slow-timers',
  build(topology) {
    topology
      .stream('steps', asSteps)
      .process<string, Step>(
        (context) => ({
          process: (step, key) => {
            if (step.timerAt !== undefined) context.timers.set(key, step.timerAt)
            return context.forward(key, step)
          },
          onTimer: () => sleep(20),
        }),
        { timers: true, ...asSteps },
      )
      .mapValues(async (step) => {
        if (step.slowMs !== undefined) await sleep(step.slowMs)
        return step
      })
      .selectKey(() => 'all')
      .repartition(asSteps)
      .to('in-order', asSteps)
  },
})
