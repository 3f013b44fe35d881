/** Foreign-key joins of tables by window, and of those that are told late: each told row is told joined. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import { eventually } from '../support/millrace.ts'
import { byKey, firstTime, produce, TestEngine } from './support/engine.ts'

const visits = Array.from({ length: 6000 }, (_, i) => ({
  key: `k${(i * 7 + (i >> 3)) % 11}`,
  value: { i },
  timestamp: firstTime + 1000 + i * 23,
}))
/** One for each partition. */
const ends = Array.from({ length: 40 }, (_, i) => ({
  key: `end${i}`,
  value: { i },
  timestamp: firstTime + 3_600_000,
}))

for (const lanes of [1, 3])
  test(`of tables by window, and of those that are told late, each told row is told joined, ${lanes} lanes`, async (t) => {
    const broker = await startEmbeddedBroker({ partitions: 4 })
    t.after(() => broker.close())
    const names = [0, 1, 2].map((i) => ({ key: `r${i}`, value: { i }, timestamp: firstTime }))
    await produce(broker.client(), 'names', [...names, ...ends])
    await produce(broker.client(), 'visits', [...visits, ...ends])
    const own = { 'engine.lanes.count': lanes, 'engine.state.store': 'memory' }
    const engine = await TestEngine.start(t, 'held-references', own, broker)
    const told = async (topic: string): Promise<Record<string, unknown[]>> =>
      byKey((await engine.read(topic)).filter(({ key }) => key?.startsWith('end') === false))
    await eventually('all is told', async () => Object.keys(await told('sessions-joined')).length > 0, 60_000)
    await engine.idle()
    for (const name of ['windows', 'final', 'sessions', 'held']) {
      const rows = await told(`${name}-told`)
      assert.ok(Object.keys(rows).length > 10)
      assert.deepEqual(await told(`${name}-joined`), rows, name)
    }
    assert.deepEqual(await told('held-told'), await told('alone-told'))
    // Told are the last of each second, for each key.
    const counts: Record<string, number[]> = {}
    for (const { key, timestamp } of visits) {
      const start = timestamp - (timestamp % 1000)
      const id = `${key}@${start}-${start + 1000}`
      counts[id] = [(counts[id]?.[0] ?? 0) + 1]
    }
    assert.deepEqual(await told('final-told'), counts)
  })
