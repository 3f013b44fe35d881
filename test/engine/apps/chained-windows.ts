/** Windows that tell when they close, three behind one another, re-keyed on the way; and a join behind the first. None has a grace for the others. */
import { defineApp, hopping, serdes, session, type Stream, tumbling } from 'millrace'

const types = { key: serdes.string, value: serdes.json<number>() }
const close = { emit: 'on-close' } as const

export default defineApp({
  applicationId: 'chained-windows',
  build(topology) {
    const clicks: Stream<string, number> = topology.stream('clicks', types)
    const first = clicks
      .groupByKey()
      .windowedBy(tumbling('10s', { grace: '1s' }), close)
      .count({ store: 'first' })
      .toStream()
      .map((count, { key }): readonly [string, number] => [`group-${Number(key.slice(1)) % 16}`, count ?? 0], types)
    const second = first
      .groupByKey()
      .windowedBy(hopping('30s', '15s'), close)
      .reduce((sum, count) => sum + count, { store: 'second' })
      .toStream()
    second.map((sum, { key, start }): readonly [string, readonly [number, number]] => [key, [start, sum]]).to('second')
    const third = second
      .map((sum): readonly [string, number] => ['all', sum ?? 0], types)
      .groupByKey()
      .windowedBy(tumbling('1m'), close)
      .reduce((sum, next) => sum + next, { store: 'third' })
      .toStream()
    third.map((sum, { key, start }): readonly [string, readonly [number, number]] => [key, [start, sum]]).to('third')
    second
      .map((sum, { key }): readonly [string, number] => [key, sum ?? 0], types)
      .groupByKey()
      .windowedBy(session('6s'), close)
      .count({ store: 'sessions' })
      .toStream()
      .map((count, { key, start, end }): readonly [string, readonly number[]] => [key, [start, end, count ?? 0]])
      .to('sessions')
    const prices: Stream<string, number> = topology.stream('prices', types)
    first
      .join(prices, (count, price) => [count, price], {
        within: '2s',
        ...{ key: types.key, left: types.value, right: types.value },
      })
      .to('joined')
  },
})
