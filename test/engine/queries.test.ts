/** Interactive queries: the committed rows of a running application, whichever lane has them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventually } from '../support/millrace.ts'
import { type In, TestEngine } from './support/engine.ts'

const start = 1_700_000_000_000
const keys = Array.from({ length: 40 }, (_, i) => `k${String(i).padStart(2, '0')}`)

async function running(t: Parameters<typeof TestEngine.start>[0], config = {}): Promise<TestEngine> {
  const engine = await TestEngine.start(t, 'queried', { 'engine.lanes.count': 3, ...config })
  const clicks: In[] = keys.flatMap((key, i) =>
    [0, 4000, 12_000].map((at) => ({ key, value: i, timestamp: start + at })),
  )
  await engine.put('clicks', clicks)
  await engine.put('prices', [
    { key: 'a', value: 1 },
    { key: 'b', value: 2 },
    { key: 'a', value: 3 },
    { key: 'b', value: null },
  ])
  await engine.put('names', [{ key: 'x', value: 'Xavier' }])
  await engine.idle()
  return engine
}

describe('interactive queries', () => {
  for (const config of [{}, { 'topology.sub-topology-split': 'repartition-topics' }]) {
    const how = Object.values(config)[0] ?? 'in-process'
    test(`answer from every lane (${how})`, async (t) => {
      const engine = await running(t, config)
      const counts = engine.runtime.store<string, number>('counts')
      for (const key of keys) assert.equal(await counts.get(key), 3)
      assert.equal(await counts.get('nobody'), undefined)
      assert.deepEqual(
        (await counts.all()).map((entry) => entry.key),
        keys,
        'in the order of the keys, over all lanes',
      )
      assert.deepEqual(
        (await counts.range('k03', 'k06')).map((entry) => entry.key),
        ['k03', 'k04', 'k05', 'k06'],
      )
      assert.equal((await counts.all(7)).length, 7)
      assert.equal(await counts.approximateEntries(), keys.length)
      assert.equal((await counts.all())[0]?.timestamp, start + 12_000)
    })
  }

  test('know windows and sessions', async (t) => {
    const engine = await running(t)
    const windows = engine.runtime.store<string, number>('windows')
    const entries = await windows.fetch('k05', start, start + 10_000)
    assert.deepEqual(
      entries.map(({ key, value, start: from, end }) => [key, value, (from ?? 0) - start, (end ?? 0) - start]),
      [
        ['k05', 10, 0, 10_000],
        ['k05', 5, 10_000, 20_000],
      ],
    )
    assert.equal((await windows.fetch('k05', start + 1, start + 9999)).length, 0)
    assert.equal((await windows.fetchAll(start, start)).length, keys.length)
    assert.equal((await windows.all()).length, 2 * keys.length)
    const sessions = engine.runtime.store<string, number>('sessions')
    assert.deepEqual(
      (await sessions.fetch('k07', start, start + 20_000)).map((s) => [s.value, (s.start ?? 0) - start]),
      [
        [2, 0],
        [1, 12_000],
      ],
    )
  })

  test('know tables and global tables', async (t) => {
    const engine = await running(t)
    const prices = engine.runtime.store<string, number>('prices')
    await eventually('the table is there', async () => (await prices.get('a')) === 3)
    assert.equal(await prices.get('b'), undefined)
    const names = engine.runtime.store<string, string>('names')
    await eventually('the global table is there', async () => (await names.get('x')) === 'Xavier')
    assert.equal((await names.all()).length, 1, 'once, although every lane has it')
  })

  test('say what is wrong with a question', async (t) => {
    const engine = await running(t)
    assert.throws(() => engine.runtime.store('count'), /there is no store count; the application has counts/)
    await assert.rejects(
      engine.runtime.store('windows').get('k01'),
      /window store windows does not answer get; ask with/,
    )
    await engine.stop()
    await assert.rejects(engine.runtime.store('counts').get('k01'), /cannot be read: the state is STOPPED/)
  })
})
