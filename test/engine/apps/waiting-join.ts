/** Joins each record with the row of its time, ten seconds later. The address tells how late records may be, as in `waiting-join.ts?late=1h`. */
import { type Duration, defineApp, serdes } from 'millrace'

const maxOutOfOrderness = (new URL(import.meta.url).searchParams.get('late') ?? '0s') as Duration

export default defineApp({
  applicationId: 'waiting-join',
  build(topology) {
    const text = { key: serdes.string, value: serdes.json<number>(), watermark: { maxOutOfOrderness } }
    const store = { name: 'rows', type: 'versioned', historyRetention: '20s' } as const
    const rows = topology.table('rows', { ...text, store })
    topology
      .stream('in', text)
      .leftJoin(rows, (value, row) => [value, row], { grace: '10s', name: 'meets' })
      .to('joined')
  },
})
