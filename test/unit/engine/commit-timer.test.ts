import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import type { Timers } from '../../../src/base/timers.ts'
import { CommitTimer } from '../../../src/engine/commit/commit-timer.ts'

let now = 0
let timers: Array<{ at: number; call: () => void }> = []
let begun: number[] = []
let wanted = true
let caughtUp = false

const clock = { now: () => now, monotonic: () => now }
const queue: Timers = {
  after(delayMs, call) {
    const timer = { at: now + delayMs, call }
    timers.push(timer)
    return () => {
      timers = timers.filter((other) => other !== timer)
    }
  },
  soon: (call) => call(),
}

function pass(untilMs: number): void {
  for (;;) {
    const [next] = timers.filter(({ at }) => at <= untilMs).sort((a, b) => a.at - b.at)
    if (next === undefined) break
    timers = timers.filter((timer) => timer !== next)
    now = next.at
    next.call()
  }
  now = untilMs
}

function paced(intervalMs: number, idleMs: number, timers = queue): CommitTimer {
  const pace = new CommitTimer(intervalMs, idleMs, clock, timers, {
    tick: () => undefined,
    wanted: () => wanted,
    caughtUp: () => caughtUp,
    begin: () => {
      begun.push(now)
      pace.began()
    },
  })
  pace.start()
  return pace
}

describe('when commits begin', () => {
  beforeEach(() => {
    now = 0
    timers = []
    begun = []
    wanted = true
    caughtUp = false
  })

  test('behind with its input: at the interval, from beginning to beginning', () => {
    const pace = paced(100, 50)
    pass(130)
    pace.began()
    pass(445)
    assert.deepEqual(begun, [100, 230, 330, 430])
  })

  test('caught up: at the idle interval', () => {
    paced(100, 50)
    caughtUp = true
    pass(260)
    assert.deepEqual(begun, [100, 150, 200, 250])
  })

  test('what comes after a quiet time begins one at once, and not two', () => {
    const pace = paced(100, 50)
    caughtUp = true
    wanted = false
    pass(1010)
    wanted = true
    pace.check()
    pace.check()
    now += 10
    pace.check()
    assert.deepEqual(begun, [1010])
  })

  test('a timer that is early waits for the rest, and does not leave the commit to the interval', () => {
    const early: Timers = {
      ...queue,
      after: (delayMs, call) => queue.after(delayMs > 1 ? delayMs - 0.5 : delayMs, call),
    }
    paced(100, 50, early)
    caughtUp = true
    pass(100)
    begun = []
    pass(260)
    assert.deepEqual(begun, [150, 200.5, 251])
  })

  test('tells how long it is until the next one may begin', () => {
    const pace = paced(100, 50)
    assert.equal(pace.dueInMs, 0)
    pace.began()
    now += 20
    assert.equal(pace.dueInMs, 30)
    now += 100
    assert.equal(pace.dueInMs, 0)
  })

  test('an idle interval beyond the interval changes nothing', () => {
    paced(100, 1000)
    caughtUp = true
    pass(350)
    assert.deepEqual(begun, [100, 200, 300])
  })

  test('nothing begins once it is closed', () => {
    const pace = paced(100, 50)
    pass(100)
    pace.close()
    pass(1000)
    pace.check()
    assert.deepEqual(begun, [100])
    assert.equal(timers.length, 0)
  })
})
