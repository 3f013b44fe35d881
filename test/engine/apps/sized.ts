/** Makes a record as large as it is told to, and keeps rows just as large. The names of its topics begin with its id. */
import { defineApp, serdes } from 'millrace'

interface Order {
  readonly n: number
  readonly bytes: number
  /** Where it goes; `sized` without. */
  readonly to?: string
}

const id = new URL(import.meta.url).searchParams.get('id') ?? 'sized'

export default defineApp({
  applicationId: id,
  build(topology) {
    const json = { key: serdes.string, value: serdes.json<Order>() }
    const made = topology
      .stream(`${id}-orders`, json)
      .mapValues(({ n, bytes, to }) => ({ n, ...(to !== undefined && { to }), pad: 'x'.repeat(bytes) }))
    made.filter(({ to }) => to === undefined).to(`${id}-sized`)
    made.filter(({ to }) => to !== undefined).to(({ to }) => `${id}-${to}`)
    topology
      .stream(`${id}-rows`, json)
      .mapValues(({ n, bytes }) => ({ n, pad: 'x'.repeat(bytes) }))
      .groupByKey()
      .reduce((_, next) => next, { store: 'latest' })
  },
})
