/** Rows past their time leave the stores also while nothing comes, and then the engine comes to rest. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { keySlot } from '../../src/base/hash.ts'
import { engineIndex } from '../../src/base/counters.ts'
import { lmdbBackends } from '../../src/state/backends.ts'
import { eventually } from '../support/millrace.ts'
import { firstTime, type In, TestEngine } from './support/engine.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-forgetting-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** More than one commit takes out of a store. */
const keys = 9000
const stores = ['windows', 'sessions', 'recent'] as const

const clicks = (count: number, timestamp: number): In[] =>
  Array.from({ length: count }, (_, i) => ({ key: `k${i}`, value: i, timestamp: firstTime + timestamp, partition: 0 }))

const commitsOf = (engine: TestEngine): number =>
  engine.runtime.view.counters()?.engine[engineIndex.commitsCommitted] ?? 0

describe('rows past their time', () => {
  for (const store of ['memory', 'lmdb']) {
    test(`go to the last one, though there is no more input: ${store} stores`, async (t) => {
      const engine = await TestEngine.start(t, 'forgetful', {
        'broker.embedded.partitions': 1,
        'engine.state.store': store,
        'engine.state.dir': join(folder, store),
      })
      const left = (): Promise<number[]> =>
        Promise.all(stores.map((name) => engine.runtime.store(name).approximateEntries()))
      await engine.put('clicks', clicks(keys, 0))
      await engine.idle()
      assert.deepEqual(
        await left(),
        stores.map(() => keys),
      )
      await engine.put('clicks', clicks(3, 100_000))
      await eventually(
        'nothing but what is kept is left',
        async () => (await left()).every((count) => count === 3),
        60_000,
      )
      await engine.idle()
      const commits = commitsOf(engine)
      await sleep(500)
      assert.equal(commitsOf(engine), commits, 'it has come to rest')
    })
  }

  test('leave a table over its own topic where it was read to, also where nothing new was read', async (t) => {
    const dir = join(folder, 'table')
    const engine = await TestEngine.start(t, 'forgetful-table', {
      'broker.embedded.partitions': 2,
      'engine.state.store': 'lmdb',
      'engine.state.dir': dir,
      'topology.optimization': 'all',
    })
    const keysOf = (partition: number): string[] =>
      Array.from({ length: 200 }, (_, i) => `k${i}`).filter((key) => keySlot(Buffer.from(key)) % 2 === partition)
    const prices = (of: readonly string[], timestamp: number): In[] =>
      of.map((key, i) => ({ key, value: i, timestamp: firstTime + timestamp }))
    const [old, fresh] = [keysOf(0), keysOf(1).slice(0, 7)]
    await engine.put('prices', prices(keysOf(1).slice(7, 20), 0))
    await engine.put('prices', prices(old, 0))
    await engine.idle()
    await engine.put('prices', prices(fresh, 100_000))
    await engine.idle()
    assert.equal(await engine.runtime.store('prices').approximateEntries(), 7)
    await engine.stop()
    const backends = lmdbBackends({ dir, applicationId: 'forgetful-table' })
    const checkpoints = [0, 1].map((partition) => backends.open('prices', partition).checkpoint()?.changelogOffset)
    backends.close()
    assert.deepEqual(checkpoints, [old.length, 13 + fresh.length])
  })
})
