/** What users of the field ask for, on the running engine: timers by key, retries that hold back their key alone. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventually } from '../support/millrace.ts'
import { byKey, firstTime, lastByKey, TestEngine } from './support/engine.ts'

interface Priced {
  readonly items: number
  readonly calls: number
  readonly others: number
}

describe('timers and retries', () => {
  test('a timer fires by event time, once, for its key, and a later record moves it', async (t) => {
    const engine = await TestEngine.start(t, 'shopper-timers')
    await engine.put('carts', [
      { key: 'a', value: 1, timestamp: firstTime },
      { key: 'b', value: 1, timestamp: firstTime + 1000 },
      { key: 'a', value: 2, timestamp: firstTime + 30_000 },
    ])
    await engine.idle()
    assert.deepEqual(await engine.read('given-up'), [])
    await engine.put('carts', [{ key: 'c', value: 1, timestamp: firstTime + 80_000 }])
    await engine.idle()
    assert.deepEqual(lastByKey(await engine.read('given-up')), { b: `given up at ${firstTime + 61_000}` })
    await engine.put('carts', [{ key: 'c', value: 1, timestamp: firstTime + 100_000 }])
    await engine.idle()
    assert.deepEqual(lastByKey(await engine.read('given-up')), {
      a: `given up at ${firstTime + 90_000}`,
      b: `given up at ${firstTime + 61_000}`,
    })
  })

  test('a call that is tried again holds back its own key, and no other', async (t) => {
    const engine = await TestEngine.start(t, 'shopper-timers', { 'engine.lanes.count': 1 })
    const others = Array.from({ length: 100 }, (_, i) => ({ key: `k${i}`, value: 1 }))
    await engine.put('baskets', [{ key: 'troubled', value: 1 }, ...others, { key: 'troubled', value: 2 }])
    await engine.idle()
    const priced = byKey<Priced>(await engine.read('priced'))
    const [first, second] = priced.troubled as [Priced, Priced]
    // It fails until all others were called: had it held them back, its attempts would have ended.
    assert.deepEqual([first.items, first.others], [1, 100])
    assert.ok(first.calls > 1, `${first.calls} calls`)
    assert.deepEqual([second.items, second.calls], [2, first.calls + 1])
    assert.equal(Object.keys(priced).length, 101)
  })
})

describe('windows and stores by time', () => {
  test('a window closes while nothing comes, once, and tells all its keys', async (t) => {
    const engine = await TestEngine.start(t, 'quiet-and-forgetful')
    await engine.put('clicks', [
      { key: 'a', value: 1, timestamp: firstTime },
      { key: 'a', value: 2, timestamp: firstTime + 10 },
      { key: 'b', value: 3, timestamp: firstTime + 20 },
    ])
    await eventually('both keys are told', async () => (await engine.read('per-second')).length >= 2)
    // The next window closes in quiet too; what belongs to the one that was told is late.
    await engine.put('clicks', [
      { key: 'a', value: 4, timestamp: firstTime + 30 },
      { key: 'c', value: 5, timestamp: firstTime + 60_000 },
    ])
    await eventually('the next window is told', async () => (await engine.read('per-second')).length >= 3)
    assert.deepEqual(byKey(await engine.read('per-second')), { a: [2], b: [1], c: [1] })
  })

  test('a store forgets a row that was not written for its time to live, by event time', async (t) => {
    const engine = await TestEngine.start(t, 'quiet-and-forgetful', { 'broker.embedded.partitions': 1 })
    const visits = [
      ['a', 0],
      ['a', 30_000],
      ['a', 59_999],
      ['b', 200_000],
      ['a', 201_000],
      ['a', 260_999],
      // The record that brings the time is judged by it.
      ['a', 261_000],
    ] as const
    for (const [i, [key, after]] of visits.entries()) {
      await engine.put('visits', [{ key, value: i, timestamp: firstTime + after }])
      await engine.idle()
    }
    assert.deepEqual(byKey(await engine.read('first-visits')), { a: [0, 4, 6], b: [3] })
  })
})
