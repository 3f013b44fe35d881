/** As `noted-twice`, and what goes on to the other lanes is told by timers. */
import { defineApp, keyValueStore, type ProcessorContext, serdes } from 'millrace'

interface Ask {
  readonly i: number
  readonly product: string
}

const asks = { key: serdes.string, value: serdes.json<Ask>() }
const noted = keyValueStore('noted', { key: serdes.string, value: serdes.json<Ask & { nth: number }>() })

/** Each is told a millisecond later, with how many of its key there were. */
const telling = (context: ProcessorContext<string, string, Ask>) => ({
  process(ask: Ask, key: string, { timestamp }: { timestamp: number }): void {
    const kept = context.store(noted)
    kept.put(key, { ...ask, nth: (kept.get(key)?.nth ?? 0) + 1 })
    context.timers.set(key, timestamp + 1)
  },
  onTimer(key: string): void {
    const last = context.store(noted).get(key)
    if (last !== undefined) void context.forward(key, last)
  },
})

export default defineApp({
  applicationId: 'told-twice',
  build(topology) {
    const stores = { stores: [noted], timers: true, ...asks } as const
    const first = topology.stream('asks', asks).process<string, Ask>(telling, stores)
    first.to('by-customer')
    first
      .selectKey((ask) => ask.product)
      .repartition(asks)
      .process<string, Ask>(telling, stores)
      .to('by-product')
  },
})
