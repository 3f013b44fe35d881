/** Asynchronous functions: order per key, many side by side, and a slow key is nobody else's business. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { byKey, type In, TestEngine } from './support/engine.ts'

interface Answer {
  readonly n: number
  readonly began: number
  readonly ended: number
}

describe('asynchronous functions', () => {
  test('20,000 calls of 5 ms on 1,000 keys run side by side, in order for each key', async (t) => {
    const keys = 1000
    const perKey = 20
    const engine = await TestEngine.start(t, 'slow-calls')
    const records: In[] = []
    for (let n = 0; n < perKey; n++) {
      for (let key = 0; key < keys; key++) records.push({ key: `k${key}`, value: { n, ms: 5 } })
    }
    await engine.put('calls', records)
    await engine.idle()

    const answers = byKey<Answer>(await engine.read('answers'))
    assert.equal(Object.keys(answers).length, keys)
    let first = Number.POSITIVE_INFINITY
    let last = 0
    let spent = 0
    for (const [key, list] of Object.entries(answers)) {
      assert.deepEqual(
        list.map((answer) => answer.n),
        Array.from({ length: perKey }, (_, n) => n),
        key,
      )
      list.forEach(({ began, ended }, i) => {
        const before = list[i - 1]
        if (before) assert.ok(began >= before.ended, `${key} has two calls at once`)
        first = Math.min(first, began)
        last = Math.max(last, ended)
        spent += ended - began
      })
    }
    t.diagnostic(`${Math.round(last - first)} ms for calls that took ${Math.round(spent)} ms one after the other`)
    assert.ok(last - first < spent / 10, `ten times faster than one after the other: ${last - first} of ${spent} ms`)
  })

  test('a key that takes seconds delays no other key', async (t) => {
    const engine = await TestEngine.start(t, 'slow-calls', { 'commit-barrier.timeout-ms': 60_000 })
    await engine.put('calls', [{ key: 'slow', value: { n: 0, ms: 5000 } }])
    const others = Array.from({ length: 200 }, (_, i) => ({ key: `k${i}`, value: { n: 0, ms: 1 } }))
    await engine.put('calls', [...others, { key: 'slow', value: { n: 1, ms: 1 } }])
    await engine.idle()

    const answers = byKey<Answer>(await engine.read('answers'))
    const [slow, behind] = answers.slow as [Answer, Answer]
    assert.ok(behind.began >= slow.ended, 'the same key waits')
    delete answers.slow
    const rest = Object.values(answers).flat()
    assert.equal(rest.length, 200)
    for (const { began } of rest) assert.ok(began < slow.ended, 'others do not wait for it')
  })
})
