/** A table of versions, joined again with what follows from it behind a re-key. */
import { defineApp, serdes } from 'millrace'

interface Price {
  readonly n: number
  readonly beside: string
}

export default defineApp({
  applicationId: 'prices-behind',
  build(topology) {
    const prices = topology.table('prices', {
      key: serdes.string,
      value: serdes.json<Price>(),
      watermark: { maxOutOfOrderness: '30s' },
      store: { name: 'prices', type: 'versioned', historyRetention: '40s' },
    })
    prices
      .toStream()
      .map((price, product) => [price?.beside ?? '', { n: price?.n ?? 0, product }])
      .leftJoin(prices, ({ n }, beside) => `${n}:${beside?.n ?? 'none'}`)
      .to('pairs', { key: serdes.string, value: serdes.json<string>() })
  },
})
