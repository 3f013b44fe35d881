/** Final results of windows of each kind. The address tells how long records are waited for, as in `closing.ts?late=1h&grace=0s`. */
import { defineApp, serdes, session, sliding, tumbling } from 'millrace'
import type { Duration } from 'millrace'

const given = new URL(import.meta.url).searchParams
const duration = (name: string): Duration => (given.get(name) ?? '0s') as Duration
const grace = duration('grace')
const retention = given.get('retention') as Duration | null
const onClose = { emit: 'on-close' } as const

export default defineApp({
  applicationId: 'closing',
  build(topology) {
    const watermark = { maxOutOfOrderness: duration('late') }
    const text = { key: serdes.string, value: serdes.json<number>() }
    const byKey = topology.stream('in', { ...text, name: 'in', watermark }).groupByKey({ name: 'grouped' })
    const kinds = {
      tumbling: byKey.windowedBy(tumbling('5s', { grace }), onClose),
      session: byKey.windowedBy(session('500ms', { grace }), onClose),
      sliding: byKey.windowedBy(sliding('100ms', { grace }), onClose),
    }
    for (const [kind, windows] of Object.entries(kinds))
      windows
        .count({ store: { name: kind, ...(retention && { retention }) }, name: `count-${kind}` })
        .toStream({ name: `told-${kind}` })
        .map((count, { key, start }) => [key, { start, count }], { name: `shown-${kind}` })
        .to(kind, { key: serdes.string, value: serdes.json(), name: `out-${kind}` })
    // It holds event time as long as it has no record.
    if (given.has('silent')) topology.stream('silent', { ...text, name: 'silent' }).to('heard', { name: 'heard' })
  },
})
