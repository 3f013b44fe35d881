import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { TimerQueue } from '../../../src/time/timers.ts'

function drain(queue: TimerQueue<string>, time: number): string[] {
  const taken: string[] = []
  for (let due = queue.takeDue(time); due; due = queue.takeDue(time)) taken.push(`${due.key}@${due.time}`)
  return taken
}

describe('timer queue', () => {
  test('gives timers in the order of their time, equal ones in the order in which they were set', () => {
    const queue = new TimerQueue<string>()
    queue.set('c', 30)
    queue.set('a', 10)
    queue.set('b', 10)
    queue.set('d', 50)
    assert.equal(queue.nextTime(), 10)
    assert.deepEqual(drain(queue, 30), ['a@10', 'b@10', 'c@30'])
    assert.equal(queue.size, 1)
    assert.equal(queue.nextTime(), 50)
  })

  test('holds one timer a key: the last one set', () => {
    const queue = new TimerQueue<string>()
    queue.set('a', 10)
    queue.set('a', 40)
    queue.setEarliest('a', 60)
    assert.equal(queue.timeOf('a'), 40)
    queue.setEarliest('a', 20)
    assert.deepEqual(drain(queue, 100), ['a@20'])
    assert.equal(queue.nextTime(), Number.POSITIVE_INFINITY)
  })

  test('a timer set anew for the time it has keeps its place', () => {
    const queue = new TimerQueue<string>()
    queue.set('a', 10)
    queue.set('b', 10)
    queue.set('a', 10)
    assert.deepEqual(drain(queue, 10), ['a@10', 'b@10'])
  })

  test('does not fire what was cancelled', () => {
    const queue = new TimerQueue<string>()
    queue.set('a', 10)
    queue.set('b', 20)
    assert.equal(queue.cancel('a'), true)
    assert.equal(queue.cancel('a'), false)
    assert.equal(queue.nextTime(), 20)
    assert.deepEqual(drain(queue, 100), ['b@20'])
  })

  test('agrees with a list that is sorted every time', () => {
    const command = fc.oneof(
      fc.record({ kind: fc.constant('set' as const), key: fc.nat(120), time: fc.nat(1000) }),
      fc.record({ kind: fc.constant('cancel' as const), key: fc.nat(120) }),
      fc.record({ kind: fc.constant('take' as const), time: fc.nat(1000) }),
    )
    fc.assert(
      fc.property(fc.array(command, { maxLength: 400 }), (commands) => {
        const queue = new TimerQueue<number>()
        let list: Array<{ key: number; time: number; order: number }> = []
        let order = 0
        for (const each of commands) {
          if (each.kind === 'set') {
            queue.set(each.key, each.time)
            const before = list.find(({ key }) => key === each.key)
            if (before?.time !== each.time) {
              list = list.filter(({ key }) => key !== each.key)
              list.push({ key: each.key, time: each.time, order: order++ })
            }
          } else if (each.kind === 'cancel') {
            queue.cancel(each.key)
            list = list.filter(({ key }) => key !== each.key)
          } else {
            list.sort((a, b) => a.time - b.time || a.order - b.order)
            const first = list[0] && list[0].time <= each.time ? list.shift() : undefined
            assert.deepEqual(queue.takeDue(each.time), first && { key: first.key, time: first.time })
          }
          assert.equal(queue.size, list.length)
        }
      }),
    )
  })
})
