/** Hopping windows; and windows that tell when they close, with longer ones behind them. */
import { defineApp, hopping, serdes, tumbling } from 'millrace'

export default defineApp({
  applicationId: 'windows-behind',
  config: { 'errors.dropped': 'dead-letter' },
  build(topology) {
    const clicks = topology.stream('clicks', { key: serdes.string, value: serdes.json<unknown>() })
    clicks
      .groupByKey()
      .windowedBy(hopping('60s', '20s'))
      .count({ store: 'hopping' })
      .toStream()
      .map((count, { key, start }): readonly [string, number[]] => [key, [start, count ?? 0]])
      .to('hopping')
    clicks
      .groupByKey()
      .windowedBy(tumbling('10s', { grace: '2s' }), { emit: 'on-close' })
      .count({ store: 'first' })
      .toStream()
      .map((count): readonly [string, number] => ['all', count ?? 0], {
        key: serdes.string,
        value: serdes.json<number>(),
      })
      .groupByKey()
      .windowedBy(tumbling('20s'), { emit: 'on-close' })
      .reduce((sum, count) => sum + count, { store: 'second' })
      .toStream()
      .to('second')
  },
})
