/** Windows that close while nothing comes, behind functions that take longer than that. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, serdes, tumbling } from 'millrace'

const slowMs = 100
const bell = new Int32Array(new SharedArrayBuffer(4))
const types = { key: serdes.string, value: serdes.json<number>() }

export default defineApp({
  applicationId: 'quiet-or-slow',
  build(topology) {
    const brief = tumbling('50ms', { closeAfterIdle: '30ms' })
    const counted = { emit: 'on-close' } as const
    topology
      .stream('blocked', types)
      .mapValues((value) => {
        Atomics.wait(bell, 0, 0, slowMs)
        return value
      })
      .groupByKey()
      .windowedBy(brief, counted)
      .count()
      .toStream({ key: (_count, window) => window.key })
      .to('blocked-counts')
    const slow = topology.stream('called', types).mapValues(async (value) => {
      await sleep(slowMs)
      return value
    })
    slow
      .groupByKey()
      .windowedBy(brief, counted)
      .count()
      .toStream({ key: (_count, window) => window.key })
      .to('called-counts')
    const reKeyed = slow.selectKey((value) => `third-${value % 3}`).groupByKey()
    reKeyed
      .windowedBy(tumbling('2s', { closeAfterIdle: '200ms' }), counted)
      .count()
      .toStream({ key: (_count, window) => window.key })
      .to('long-counts')
    reKeyed
      .windowedBy(brief)
      .count()
      .suppress({ until: 'window-closes' })
      .toStream({ key: (_count, window) => window.key })
      .to('re-keyed-counts')
    const perSecond = topology
      .stream('ticks', types)
      .groupByKey()
      .windowedBy(tumbling('1s', { closeAfterIdle: '100ms' }), counted)
      .count()
      .toStream({ key: (_count, window) => window.key })
    perSecond.to('per-second')
    perSecond
      .groupByKey()
      .windowedBy(tumbling('2s', { closeAfterIdle: '100ms' }), counted)
      .reduce((sum, count) => sum + count)
      .toStream({ key: (_sum, window) => window.key })
      .to('per-two-seconds')
    const late = topology
      .stream('ticks', types)
      .groupByKey()
      .windowedBy(tumbling('1s', { closeAfterIdle: '8s' }), counted)
      .count()
      .toStream()
    const soon = tumbling('3s', { closeAfterIdle: '100ms' })
    late
      .groupByKey()
      .windowedBy(soon, counted)
      .reduce((sum, count) => sum + count)
      .toStream({ key: (_sum, window) => String(window.key.start) })
      .to('soon-in-task')
    late
      .selectKey((_count, window) => window.key)
      .groupByKey(types)
      .windowedBy(soon, counted)
      .reduce((sum, count) => sum + count)
      .toStream({ key: (_sum, window) => window.key })
      .to('soon-elsewhere')
  },
})
