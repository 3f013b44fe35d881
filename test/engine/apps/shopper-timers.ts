/** A cart that is left alone for a minute of event time is given up: a timer for each key. Calls that fail at first. */
import { defineApp, serdes, withRetry } from 'millrace'

class Busy extends Error {
  override readonly name = 'Busy'
}

const tried = new Map<string, number>()

export default defineApp({
  applicationId: 'shopper-timers',
  build(topology) {
    const carts = topology.stream('carts', { key: serdes.string, value: serdes.json<number>() })
    carts
      .process<string, string>(
        (context) => ({
          process: (_items, key, record) => context.timers.set(key, record.timestamp + 60_000),
          onTimer: (key, at) => context.forward(key, `given up at ${at}`),
        }),
        { timers: true },
      )
      .to('given-up')
    // A sub-topology of its own, without state: no barrier waits there.
    topology
      .stream('baskets', { key: serdes.string, value: serdes.json<number>() })
      .mapValues(
        withRetry(
          async (items, key) => {
            const calls = (tried.get(key) ?? 0) + 1
            tried.set(key, calls)
            const others = tried.size - 1
            if (key === 'troubled' && others < 100) throw new Busy('try again')
            return { items, calls, others }
          },
          { attempts: 400, backoff: 20, maxBackoff: 150 },
        ),
      )
      .to('priced')
  },
})
