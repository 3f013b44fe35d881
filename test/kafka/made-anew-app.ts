/** Passes on what comes, each record after a while; and counts it where asked. */
import { defineApp, serdes } from 'millrace'

/** Modules are loaded once a process: the test puts what differs from run to run into the address. */
const asked = new URL(import.meta.url).searchParams
const prefix = asked.get('prefix') ?? 'made-anew'
const slowMs = Number(asked.get('slow') ?? 0)
const typed = { key: serdes.string, value: serdes.json<{ readonly n: number }>() }

export default defineApp({
  applicationId: prefix,
  build(topology) {
    const input = topology.stream(`${prefix}-in`, typed)
    const passed = input.mapValues(async (value) => {
      if (slowMs > 0) await new Promise((resolve) => setTimeout(resolve, slowMs))
      return value
    })
    passed.to(`${prefix}-out`, typed)
    if (asked.has('counts'))
      passed
        .groupByKey(typed)
        .count({ store: 'counts' })
        .toStream()
        .to(`${prefix}-counts`, { key: serdes.string, value: serdes.json<number>() })
  },
})
