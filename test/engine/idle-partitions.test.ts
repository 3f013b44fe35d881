/** Partitions turn idle once the broker says that they are empty, and do not wait for a fetch that waits there. */
import { test } from 'node:test'
import { eventually } from '../support/millrace.ts'
import { TestEngine } from './support/engine.ts'

const fetchWaitMs = 60_000

test('a partition is idle when its time is over, though a fetch waits at the broker for far longer', async (t) => {
  const engine = await TestEngine.start(t, 'counted-windows', {
    'runtime.http.enabled': false,
    'watermark.idleness-timeout': '300ms',
    'consumer.fetch.max.wait.ms': fetchWaitMs,
  })
  await engine.put('clicks', [{ key: 'k', value: { page: 'p' } }])
  const idle = (): boolean => {
    const partitions = Object.values(engine.runtime.view.watermarks()?.partitions ?? {})
    const isRead = partitions.some(({ lastEventTimeMs }) => lastEventTimeMs !== null)
    return isRead && partitions.every((partition) => partition.idle)
  }
  await eventually('all partitions are idle', idle, fetchWaitMs / 2)
})
