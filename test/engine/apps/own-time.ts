/** Windows by a time that lies in the records themselves. */
import { defineApp, serdes, tumbling } from 'millrace'

interface Sale {
  readonly amount: number
  readonly at?: number
}

export default defineApp({
  applicationId: 'own-time',
  build(topology) {
    const settings = { key: serdes.string, value: serdes.json<Sale>() }
    topology
      .stream('timed', {
        ...settings,
        watermark: { maxOutOfOrderness: '10s' },
        timestamp: (sale) => {
          if (sale.amount < 0) throw new RangeError(`no time for ${sale.amount}`)
          return sale.at ?? -1
        },
      })
      .groupByKey()
      .windowedBy(tumbling('1m'), { emit: 'on-close' })
      .count({ store: 'minutes' })
      .toStream()
      .map((count, window): readonly [string, number[]] => [window.key, [window.start, count]])
      .to('minutes')
  },
})
