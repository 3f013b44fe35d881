/** Re-keyed twice: by category, then by the parity of the count; the second count sees every update of the first. */
import { defineApp, serdes, tumbling } from 'millrace'

export default defineApp({
  applicationId: 'two-levels',
  build(topology) {
    const input = topology.stream('words', {
      key: serdes.string,
      value: serdes.json<string>(),
      watermark: { maxOutOfOrderness: '1s' },
    })
    input
      .groupBy((word) => word)
      .count({ store: 'by-word' })
      .toStream()
      .to('by-word')
    input
      .selectKey((word) => word)
      .groupByKey()
      .count({ store: 'first' })
      .toStream()
      .groupBy((count) => (count % 2 === 0 ? 'even' : 'odd'))
      .count({ store: 'second' })
      .toStream()
      .to('by-parity')
    input
      .groupBy((word) => word)
      .windowedBy(tumbling('10s', { grace: '1s' }), { emit: 'on-close' })
      .count({ store: 'windows' })
      .toStream()
      .map((count, window): readonly [string, number[]] => [window.key, [window.start, count]])
      .to('windows')
  },
})
