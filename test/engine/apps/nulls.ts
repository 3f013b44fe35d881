/** Streams of topics with records that have no value: one that expects them, one that does not, and some for which they are rows deleted. */
import { defineApp, serdes } from 'millrace'

const settings = { key: serdes.string, value: serdes.json<number>() }
const nullToZero = (value: number | null): number => value ?? 0

export default defineApp({
  applicationId: 'nulls',
  build(topology) {
    topology.stream('plain', settings).mapValues(nullToZero).to('told')
    topology
      .stream('known', { ...settings, tombstones: true })
      .mapValues(nullToZero)
      .to('untold')
    topology.stream('rows', settings).toTable({ store: 'rows' }).toStream().to('rows-again')
    // Its function is not ready for null, and need not be.
    topology
      .table('timed', { ...settings, timestamp: (value) => value.valueOf() })
      .toStream()
      .to('timed-again')
    topology.stream('counted', settings).groupByKey().count().toStream().to('counts')
  },
})
