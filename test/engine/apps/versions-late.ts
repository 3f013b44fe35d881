/** What tables and processors keep of the history of a key, where some records wait for a function. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, serdes, versionedStore } from 'millrace'

interface Rate {
  readonly n: number
  readonly slow: number
}

const asRates = { key: serdes.string, value: serdes.json<Rate>(), watermark: { maxOutOfOrderness: '2s' } } as const
const asNumbers = { key: serdes.string, value: serdes.json<number>() }

const waited = (rate: Rate): Rate | Promise<Rate> => (rate.slow > 0 ? sleep(rate.slow).then(() => rate) : rate)

export default defineApp({
  applicationId: 'versions-late',
  build(topology) {
    const slowed = topology.stream('rates', asRates).mapValues(waited)
    const versions = slowed.toTable({ store: { name: 'rates-kept', type: 'versioned', historyRetention: '10s' } })
    slowed.leftJoin(versions, (_rate, kept) => kept?.n ?? 0).to('joined', asNumbers)
    const history = versionedStore('history', { key: serdes.string, value: serdes.number, historyRetention: '10s' })
    slowed
      .process<string, number>(
        (context) =>
          ({ n }, key, { timestamp }) => {
            const kept = context.store(history).put(key, n, timestamp) === null ? -1 : 1
            return context.forward(key, kept * (context.store(history).get(key, timestamp)?.value ?? 0))
          },
        { stores: [history] },
      )
      .to('processed', asNumbers)
  },
})
