/**
 * A task of two levels: records of the next epoch come to it from its topic while the last ones of this epoch are still
 * on their way to it from other lanes. Its topic is full when it starts.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import { firstTime, type Out, produce, TestEngine } from './support/engine.ts'

const count = 20_000
const asks = Array.from({ length: count }, (_, i) => ({
  key: `customer-${i % 50}`,
  value: { i, product: `product-${(i * 7) % 20}` },
  timestamp: firstTime + i * 1000,
}))

/** For each key the numbers 1, 2, 3 … as often as it is in the input. */
function told(records: readonly Out[]): Record<string, number> {
  const last: Record<string, number> = {}
  for (const { key, value } of records) {
    const { nth } = value as { nth: number }
    assert.equal(nth, (last[key as string] ?? 0) + 1, `${key} is noted one by one`)
    last[key as string] = nth
  }
  return last
}

/** An application that has come through a full topic. */
async function worked(t: TestContext, app: string, lanes: number): Promise<TestEngine> {
  const broker = await startEmbeddedBroker({ partitions: 4 })
  t.after(() => broker.close())
  await produce(broker.client(), 'asks', asks)
  // A lane that waits for itself ends the test, instead of beginning again.
  const atOnce = { 'commit-barrier.timeout-ms': 5000, 'commit-barrier.max-engine-restarts': 0 }
  const engine = await TestEngine.start(t, app, { 'engine.lanes.count': lanes, ...atOnce }, broker)
  await engine.idle()
  return engine
}

for (const lanes of [2, 4]) {
  test(`nothing of an epoch waits behind what belongs to the next: ${lanes} lanes`, async (t) => {
    const engine = await worked(t, 'noted-twice', lanes)
    const byCustomer = asks.map(({ key }) => key)
    const byProduct = asks.map(({ value }) => value.product)
    assert.deepEqual(told(await engine.read('by-customer')), Object.fromEntries(tally(byCustomer)))
    assert.deepEqual(told(await engine.read('by-product')), Object.fromEntries(tally(byProduct)))
  })
}

for (const lanes of [2, 4]) {
  test(`no timer tells anything behind the end of its epoch: ${lanes} lanes`, async (t) => {
    const engine = await worked(t, 'told-twice', lanes)
    // What comes much later lets the last timers fire: first those of the customers, then those of the products.
    for (const later of [2, 3]) {
      const timestamp = firstTime + later * count * 1000
      const value = { i: count, product: 'last' }
      const last = [0, 1, 2, 3].map((partition) => ({ key: `last-${partition}`, value, timestamp, partition }))
      await engine.put('asks', last)
      await engine.idle()
    }
    const byCustomer = (await engine.read('by-customer')).filter(({ key }) => !key?.startsWith('last'))
    assert.deepEqual(lastTold(byCustomer), Object.fromEntries(tally(asks.map(({ key }) => key))))
    // How often a timer fires before it is set anew depends on how the records come to such a task.
    const products = byCustomer.map(({ value }) => (value as { product: string }).product)
    const byProduct = (await engine.read('by-product')).filter(({ key }) => key !== 'last')
    assert.deepEqual(lastTold(byProduct), Object.fromEntries(tally(products)))
  })
}

/** The last number of each key, none of which is told twice. */
function lastTold(records: readonly Out[]): Record<string, number> {
  const last: Record<string, number> = {}
  for (const { key, value } of records) {
    const { nth } = value as { nth: number }
    assert.ok(nth > (last[key as string] ?? 0), `${key} is told in order`)
    last[key as string] = nth
  }
  return last
}

function tally(keys: readonly string[]): Map<string, number> {
  const counted = new Map<string, number>()
  for (const key of keys) counted.set(key, (counted.get(key) ?? 0) + 1)
  return counted
}
