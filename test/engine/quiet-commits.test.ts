/** A record that comes alone makes one commit, and none of nothing behind it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { engineIndex } from '../../src/base/counters.ts'
import { eventually } from '../support/millrace.ts'
import { TestEngine } from './support/engine.ts'

const records = 12

test('a re-keyed record that comes alone makes one commit', async (t) => {
  const engine = await TestEngine.start(t, 'told-totals', { 'broker.embedded.partitions': 2, 'engine.lanes.count': 2 })
  await engine.reaches('RUNNING')
  const commits = (): number => engine.runtime.view.counters()?.engine[engineIndex.commitsCommitted] as number
  const before = commits()
  for (let n = 0; n < records; n++) {
    await engine.put('in', [{ key: `k${n}`, value: 1, timestamp: 1_700_000_000_000 + n * 20_000, partition: 0 }])
    await eventually('it is committed', () => commits() > before + n)
    await sleep(300)
  }
  const made = commits() - before
  // Partitions that turn idle, and time that they let go on, may make a few of their own.
  assert.ok(made <= records * 1.5, `${made} commits for ${records} records`)
})
