/** What lanes hold while a long changelog is replayed into stores on disk. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { laneIndex } from '../../src/base/counters.ts'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import { TestEngine } from './support/engine.ts'

const MiB = 2 ** 20
const keys = 12_000
const text = 'x'.repeat(600)

test('a start that replays a long changelog holds no more rows than the write buffer allows, and what it reads at once', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-restore-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const broker = await startEmbeddedBroker({ partitions: 4 })
  t.after(() => broker.close())
  const config = (dir: string) => ({
    'engine.lanes.count': 1,
    'engine.state.dir': join(folder, dir),
    'engine.state.store': 'lmdb',
    'engine.state.write-buffer-bytes': MiB,
  })
  const first = await TestEngine.start(t, 'large-rows', config('first'), broker)
  await first.reaches('RUNNING')
  for (let from = 0; from < keys; from += 1000)
    await first.put(
      'in',
      Array.from({ length: 1000 }, (_, i) => ({ key: `key-${from + i}`, value: text })),
    )
  await first.runtime.untilIdle()
  await first.stop()

  // Nothing is there of the stores: all of the changelog is replayed, some 8 MiB.
  const second = await TestEngine.start(t, 'large-rows', config('second'), broker)
  let most = 0
  const watch = setInterval(() => {
    for (const lane of second.runtime.view.counters()?.lanes ?? [])
      most = Math.max(most, lane[laneIndex.unwrittenBytes] as number)
  }, 1)
  t.after(() => clearInterval(watch))
  await second.reaches('RUNNING')
  assert.ok(most > 0, 'nothing was seen of the start')
  assert.ok(
    most < 5 * MiB,
    `a lane held ${(most / MiB).toFixed(1)} MiB of rows, and may hold 1 MiB and what it reads at once`,
  )
})
