/**
 * The outbox of a service: it writes its events into a table, in the transaction that changes its data. The rows come as a topic, some
 * twice. Each goes once to the topic of its kind, under the key of what it is about, in the order in which it was written.
 */
import { defineApp, keyValueStore, serdes } from 'millrace'

export interface OutboxRow {
  /** Rises with every row of the table. */
  readonly id: number
  readonly about: string
  readonly kind: string
  readonly payload: unknown
}

export default defineApp({
  applicationId: 'outbox',
  build(topology) {
    const last = keyValueStore<string, number>('last-row', { key: serdes.string, value: serdes.number })
    topology
      .stream('outbox', { key: serdes.string, value: serdes.json<OutboxRow>() })
      .selectKey((row) => row.about, { key: serdes.string })
      .processValues<OutboxRow>(
        (context) => {
          const rows = context.store(last)
          return (row, about) => {
            if (row.id <= (rows.get(about) ?? -1)) return
            rows.put(about, row.id)
            return context.forward(row, { headers: [['outbox-id', String(row.id)]] })
          }
        },
        { stores: [last] },
      )
      .to((row) => `events.${row.kind}`, { key: serdes.string, value: serdes.json<OutboxRow>() })
  },
})
