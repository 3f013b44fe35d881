/** A runtime that is killed leaves its files as they are to the next one in the same process. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { laneIndex } from '../../src/base/counters.ts'
import { type Runtime, startEmbeddedBroker, startRuntime } from '../../src/runtime/index.ts'
import { eventually } from '../support/millrace.ts'
import { appFile } from './support/engine.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-abandoned-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const keys = Array.from({ length: 2000 }, (_, n) => `k${n}`)
/** What a killed lane held would be written this long after. */
const writeIntervalMs = 1000

test('rows that were held when it was killed are not written over newer ones', async () => {
  const broker = await startEmbeddedBroker({ partitions: 4 })
  const start = (settings: Record<string, unknown>): Promise<Runtime> =>
    startRuntime({
      application: appFile('shared-counts'),
      broker,
      config: {
        'runtime.http.enabled': false,
        'engine.lanes.count': 2,
        'engine.state.store': 'lmdb',
        'engine.state.dir': folder,
        ...settings,
      },
      log: () => undefined,
    })
  let fed = 0
  const count = async (runtime: Runtime): Promise<void> => {
    fed++
    const records = keys.map((key) => ({ key, value: {}, timestamp: fed * 1000 }))
    await runtime.produce('shared-events', records)
    await runtime.untilIdle()
  }
  const killed = await start({ 'engine.state.write-interval-ms': writeIntervalMs })
  await count(killed)
  const unwritten = (): number =>
    (killed.view.counters()?.lanes ?? []).reduce((sum, lane) => sum + (lane[laneIndex.unwrittenBytes] as number), 0)
  await eventually('all is written', () => unwritten() === 0)
  await count(killed)
  assert.ok(unwritten() > 0, 'rows are held when it is killed')
  await killed.kill()

  // Nothing is kept in memory, so that what is read next is what lies on the disk.
  const next = await start({ 'engine.state.write-buffer-bytes': 0 })
  try {
    await count(next)
    await sleep(2 * writeIntervalMs)
    await count(next)
    const counts = await Promise.all(keys.map((key) => next.store<string, number>('counts').get(key)))
    assert.deepEqual(
      counts,
      keys.map(() => fed),
    )
  } finally {
    await next.stop()
    await broker.close()
  }
})
