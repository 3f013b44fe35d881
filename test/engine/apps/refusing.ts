/** Refuses orders that say so; it keeps nothing, so that its topic may be deleted and made anew. */
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'refusing',
  build(topology) {
    topology
      .stream('orders', { key: serdes.string, value: serdes.json<{ n: number; isWrong: boolean }>() })
      .mapValues(({ n, isWrong }) => {
        if (isWrong) throw new RangeError(`order ${n} is wrong`)
        return n
      })
      .to('taken')
  },
})
