/** Tables that are grouped anew through topics, whose readers take the oldest record first. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstTime, type In, lastByKey, TestEngine } from './support/engine.ts'

const order = (key: string, product: string | null, at: number, amount = 1): In => ({
  key,
  value: product === null ? null : { product, amount },
  timestamp: firstTime + at,
})

for (const split of ['in-process', 'repartition-topics']) {
  test(`a row is taken out of its group behind where it was put in, however late its change: ${split}`, async (t) => {
    const engine = await TestEngine.start(t, 'regrouped', { 'topology.sub-topology-split': split })
    await engine.put('shops', [order('a', 'x', 0), order('a', 'y', 20_000), order('b', 'x', 30_000)])
    await engine.put('orders', [
      order('a', 'tea', 10_000),
      // Older than what they change: to another group, in the same one, and away.
      order('a', 'milk', 5_000),
      order('b', 'tea', 12_000),
      order('b', 'tea', 4_000, 0),
      order('b', 'milk', 3_000),
      order('c', 'tea', 11_000),
      order('c', null, 2_000),
      order('d', 'tea', 13_000),
    ])
    await engine.idle()
    const some = async (topic: string): Promise<Record<string, unknown>> =>
      Object.fromEntries(Object.entries(lastByKey(await engine.read(topic))).filter(([, n]) => n !== 0 && n !== null))
    assert.deepEqual(await some('counted'), { tea: 1, milk: 2 })
    assert.deepEqual(await some('large'), { tea: 1, milk: 2 })
    assert.deepEqual(await some('by-shop'), { 'tea-': 1, 'milk-y': 1, 'milk-x': 1 })
  })
}

const throughOnePartition = { 'topology.sub-topology-split': 'repartition-topics', 'broker.embedded.partitions': 1 }
/** A deletion of a row that is not there: it moves event time on, and changes nothing. */
const time = (at: number): In => order('time', null, at)

test('a row that was held back is taken out of its group behind where it was put in, however late its change', async (t) => {
  const engine = await TestEngine.start(t, 'regrouped', throughOnePartition)
  await engine.put('shops', [time(900_000)])
  await engine.put('orders', [
    order('a', 'tea', 10_000),
    order('b', 'coffee', 12_000),
    order('c', 'juice', 11_000),
    order('d', 'water', 13_000),
    // All of these are let out. Then come late changes: to another group, in the same one, and away.
    time(300_000),
    order('a', 'milk', 5_000),
    order('b', 'coffee', 4_000),
    order('c', null, 2_000),
    time(600_000),
  ])
  await engine.idle()
  const held = lastByKey(await engine.read('held'))
  assert.deepEqual({ ...held, juice: held.juice ?? 0 }, { tea: 0, milk: 1, coffee: 1, juice: 0, water: 1 })
})

test('so is one that is joined while its next update is held back', async (t) => {
  const engine = await TestEngine.start(t, 'regrouped', throughOnePartition)
  await engine.put('shops', [order('a', 'x', 3_000), time(305_000), order('a', 'y', 4_000), time(900_000)])
  await engine.put('orders', [order('a', 'tea', 10_000), time(300_000), order('a', 'tea', 304_000), time(900_000)])
  await engine.idle()
  const counts = lastByKey(await engine.read('held-by-shop'))
  assert.deepEqual({ ...counts, 'tea-x': counts['tea-x'] ?? 0 }, { 'tea-x': 0, 'tea-y': 1 })
})
