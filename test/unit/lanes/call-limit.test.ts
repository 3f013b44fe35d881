/** How many calls at once: as many as make more come through, found out from nothing but when calls end. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CallLimit } from '../../../src/lanes/tasks/call-limit.ts'

/** A service that answers so many calls at once, each within 10 ms, and lets the others wait. */
function ask(limit: CallLimit, capacity: () => number, calls: number, noise = (): number => 1): number {
  let now = 0
  for (let done = 0; done < calls; ) {
    const out = limit.limit
    limit.full()
    now += (10 * noise() * out) / Math.min(out, capacity())
    for (let i = 0; i < out; i++, done++) limit.ended(true, now)
  }
  return now
}

describe('the number of calls at once', () => {
  test('is about as many as the service answers at a time', () => {
    for (const capacity of [4, 20, 100, 700]) {
      const limit = new CallLimit(1000)
      ask(limit, () => capacity, 100_000)
      assert.ok(limit.limit >= 0.6 * capacity && limit.limit <= 2 * capacity, `${limit.limit} for ${capacity}`)
    }
  })

  test('follows a service that gets slower, and one that recovers', () => {
    const limit = new CallLimit(1000)
    ask(limit, () => 200, 50_000)
    ask(limit, () => 10, 50_000)
    assert.ok(limit.limit <= 25, `${limit.limit} at a tenth`)
    ask(limit, () => 200, 200_000)
    assert.ok(limit.limit >= 100, `${limit.limit} when it has recovered`)
  })

  test('grows on a machine that is busy with other things', () => {
    for (let seed = 1; seed <= 20; seed++) {
      let state = seed
      // One round in three is held up for as long as two to five of them.
      const held = (): number => {
        state = (state * 1_103_515_245 + 12_345) % 2 ** 31
        const drawn = state / 2 ** 31
        return drawn < 1 / 3 ? 2 + drawn * 9 : 1
      }
      const limit = new CallLimit(1000)
      ask(limit, () => 1000, 20_000, held)
      assert.ok(limit.limit >= 250, `${limit.limit} with seed ${seed}`)
    }
  })

  test('goes down where calls fail, and never to nothing', () => {
    const limit = new CallLimit(1000)
    for (let i = 0; i < 10_000; i++) limit.ended(false, i)
    assert.equal(limit.limit, 4)
  })

  test('stays what the application says', () => {
    const limit = new CallLimit(1000, 7)
    ask(limit, () => 500, 10_000)
    assert.equal(limit.limit, 7)
  })
})
