/** Streams that are merged with what becomes of them behind a re-key: their tasks feed themselves, and their records do not. */
import { defineApp, serdes, tumbling } from 'millrace'

export interface Event {
  readonly id: string
  readonly group?: string
}

const typed = { key: serdes.string, value: serdes.json<Event>() }
const prefix = new URL(import.meta.url).searchParams.get('prefix') ?? 'merged-again'

export default defineApp({
  applicationId: prefix,
  build(topology) {
    const orders = topology.stream(`${prefix}-orders`, typed)
    const payments = topology.stream(`${prefix}-payments`, typed)
    const byId = ({ id }: Event): string => id
    const paid = orders
      .selectKey(byId, { key: serdes.string })
      .join(payments.selectKey(byId, { key: serdes.string }), ({ id }) => ({ id: `paid ${id}` }), {
        within: '10s',
        left: typed.value,
        right: typed.value,
      })
    paid.to(`${prefix}-paid`, typed)
    paid.merge(orders).to(`${prefix}-all`, typed)

    const visits = topology.stream(`${prefix}-visits`, typed)
    const counted = visits
      .groupBy(({ group = '' }) => group, typed)
      .windowedBy(tumbling('10s'), { emit: 'on-close' })
      .count()
      .toStream()
      .selectKey((_, { key }) => key, { key: serdes.string })
      .mapValues((count): Event => ({ id: String(count) }))
    counted.to(`${prefix}-counted`, typed)
    counted.merge(visits).to(`${prefix}-visited`, typed)
  },
})
