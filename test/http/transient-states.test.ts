/** States that pass by themselves, seen through HTTP on the running engine. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import type { Json } from './support/client.ts'
import { endLeftThreads, type Live, startLive } from './support/live.ts'
import { readPrometheus } from './support/prometheus.ts'

after(endLeftThreads)

const statesOf = async (live: Live): Promise<string[]> =>
  ((await live.get('/state')).history as unknown as Json[]).map((entry) => String(entry.state))

describe('restoring', () => {
  test('is not ready but alive, fetches nothing, and tells what is left', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-restore-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const config = { 'broker.bootstrap-servers': `embedded:${folder}` }
    const first = await startLive({ app: 'conformance-app', config })
    await first.untilState('RUNNING')
    for (let from = 0; from < 120_000; from += 10_000) {
      const words = Array.from({ length: 10_000 }, (_, i) => ({
        key: `k${from + i}`,
        value: { text: `word-${from + i}` },
        timestamp: 1e12 + from + i,
      }))
      await first.feed('words', words)
    }
    await first.runtime.untilIdle()
    await first.stop()

    const second = await startLive({ app: 'conformance-app', config })
    t.after(() => second.stop())
    const seen = { restoring: 0, ready: new Set<number>(), live: new Set<number>(), unpaused: 0, progress: 0 }
    await second.until('the store is restored', async () => {
      const [ready, live, state, consumer] = await Promise.all(
        ['/health/ready', '/health/live', '/state', '/consumer'].map((path) => second.ask({ path })),
      )
      const after = await second.get('/state')
      if (state?.json.current === ('RESTORING' as unknown) && after.current === ('RESTORING' as unknown)) {
        seen.restoring++
        seen.ready.add(ready?.status ?? 0)
        seen.live.add(live?.status ?? 0)
        if (consumer?.status === 200) {
          const buffers = Object.values(consumer.json.assignment ?? {}) as unknown as Array<{ paused: boolean }>
          seen.unpaused += buffers.filter((buffer) => !buffer.paused).length
        }
        if (Array.isArray(state?.json.restore)) seen.progress++
      }
      return after.current === ('RUNNING' as unknown)
    })
    assert.ok((await statesOf(second)).includes('RESTORING'))
    t.diagnostic(`RESTORING was seen ${seen.restoring} times, with progress ${seen.progress} times`)
    if (seen.restoring > 0) {
      assert.deepEqual([...seen.ready], [503])
      assert.deepEqual([...seen.live], [200])
      assert.equal(seen.unpaused, 0)
    }
    const families = readPrometheus((await second.ask({ path: '/metrics' })).body)
    const restored = families.find((family) => family.name === 'engine_store_restored_records_total')
    t.diagnostic(`${restored?.samples[0]?.value} changelog records restored`)
  })
})

describe('restarting in place', () => {
  test('shows in the history, the metrics and the budget', async (t) => {
    const live = await startLive({ app: 'scenario-app', config: { 'commit-barrier.timeout-ms': 500 } })
    t.after(() => live.stop())
    await live.untilState('RUNNING')
    await live.feed('orders', [{ key: 'a', value: { slowMs: 1200 }, timestamp: 1e12, partition: 0 }])
    await live.until('a restart shows', async () => (await statesOf(live)).includes('RESTARTING'))
    const barriers = await live.until('the budget shows it', async () => {
      const json = await live.get('/debug/barriers')
      return Number(json.restarts?.used) >= 1 && json
    })
    const { causes } = barriers.restarts as unknown as { causes: string[] }
    assert.match(
      causes[0] ?? '',
      /did not reach the barrier in time; lane-\d has waited [\d.]+ s for the answer of a function of [\w-]+, at the record orders\/0 at offset 0$/,
    )
    assert.equal((await live.ask({ path: '/health/live' })).status, 200)
    await live.until('the metric shows it', async () => {
      const families = readPrometheus((await live.ask({ path: '/metrics' })).body)
      const restarts = families.find((family) => family.name === 'engine_restarts_total')
      return (restarts?.samples.find(({ labels }) => labels.cause === 'barrier_timeout')?.value ?? 0) >= 1
    })
  })
})
