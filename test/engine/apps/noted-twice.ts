/** A store that two operators write, one of which feeds the other by way of other lanes: they are one task. */
import { defineApp, keyValueStore, type ProcessorContext, serdes } from 'millrace'

interface Ask {
  readonly i: number
  readonly product: string
}

const asks = { key: serdes.string, value: serdes.json<Ask>() }
const noted = keyValueStore('noted', { key: serdes.string, value: serdes.json<number>() })

const noting = (context: ProcessorContext<string, string, Ask>) => ({
  process(ask: Ask, key: string): void {
    const kept = context.store(noted)
    kept.put(key, (kept.get(key) ?? 0) + 1)
    void context.forward(key, { ...ask, nth: kept.get(key) } as Ask)
  },
})

export default defineApp({
  applicationId: 'noted-twice',
  build(topology) {
    const stores = { stores: [noted], ...asks }
    const first = topology.stream('asks', asks).process<string, Ask>(noting, stores)
    first.to('by-customer')
    first
      .selectKey((ask) => ask.product)
      .repartition(asks)
      .process<string, Ask>(noting, stores)
      .to('by-product')
  },
})
