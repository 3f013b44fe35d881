/** Orders and what was paid for them, joined behind a function that takes its time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, serdes } from 'millrace'

interface Step {
  readonly what: string
  readonly slowMs: number
}

const asSteps = { key: serdes.string, value: serdes.json<Step>() }
const text = { key: serdes.string, value: serdes.string }

export default defineApp({
  applicationId: 'overtaken-joins',
  build(topology) {
    const lookedUp = async ({ what, slowMs }: Step): Promise<string> => {
      await sleep(slowMs)
      return what
    }
    // Behind a repartition the heads of all partitions wait for one another: event time is the same in every run.
    const steps = topology.stream('steps', asSteps).repartition(asSteps).mapValues(lookedUp)
    const orders = steps.filter((what) => what === 'ordered')
    const payments = steps.filter((what) => what === 'paid')
    const both = (order: string | null, payment: string | null): string => `${order}, ${payment}`
    const within = { before: '30m', after: '5m' }
    orders.leftJoin(payments, both, { within, key: serdes.string }).to('left', text)
    orders.outerJoin(payments, both, { within, key: serdes.string }).to('outer', text)
    const prices = topology.table('prices', {
      ...text,
      store: { type: 'versioned', historyRetention: '1d' },
    })
    steps
      .leftJoin(prices, (what, price) => `${what}, ${price}`, { grace: '2m', key: serdes.string, value: serdes.string })
      .to('priced', text)
  },
})
