import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { epoch, Story } from './story.ts'

describe('alignment', () => {
  const group = { group: 'g', drift: 100 }

  test('holds a record that is further ahead than the drift, until the laggard has a record', () => {
    const story = new Story().assign('a', group).assign('b', group)
    story.feed('a', [1000]).feed('b', [1000])
    story.all()
    story.at(10).feed('a', [1100, 1101])
    assert.equal(story.next(), 'a@1100/1000', 'within the drift')
    assert.equal(story.next(), null)
    assert.deepEqual(story.snapshot().alignmentBinding, {
      group: 'g',
      partition: 'a:0',
      emptyLaggards: ['b:0'],
      sinceMs: epoch + 10,
    })
    assert.deepEqual([story.shown('a').alignmentHeld, story.shown('b').alignmentHeld], [true, false])
    story.at(30).feed('b', [1001])
    assert.deepEqual(story.all(), ['b@1001/1001', 'a@1101/1001'])
    assert.equal(story.snapshot().alignmentBinding, null)
  })

  test('judges by what the record would bring: one far ahead does not slip through', () => {
    const story = new Story().assign('a', group).assign('b', group)
    story.feed('a', [10, 99_999]).feed('b', [10])
    assert.deepEqual(story.all(), ['a@10/10', 'b@10/10'])
    assert.equal(story.shown('a').watermarkMs, 10)
  })

  test('never stops while every member has a record: order alone aligns (FLINK-37399)', () => {
    const story = new Story().assign('a', group).assign('b', group)
    const far = (from: number) => Array.from({ length: 100 }, (_, i) => from + i * 1000)
    story.feed('a', far(0)).feed('b', far(500))
    assert.equal(story.all().length, 199, 'all but the last, which has no partner left')
  })

  test('lets a late record of the partition that is ahead be held likewise (edge case 1)', () => {
    const story = new Story().assign('a', group).assign('b', group)
    story.feed('b', [1000]).feed('a', [1050])
    story.all()
    story.feed('a', [1090]).all()
    story.feed('a', [2000])
    assert.equal(story.next(), null)
  })

  test('an older record elsewhere goes first, and the hold goes on since it began (edge case 2)', () => {
    const story = new Story().assign('a', group).assign('b', group).assign('x')
    story.feed('a', [1000]).feed('b', [1000]).feed('x', [900])
    story.all()
    story.at(10).feed('a', [2000])
    assert.equal(story.next(), null)
    story.at(20).feed('x', [1500])
    assert.equal(story.next(), 'x@1500/1000')
    assert.equal(story.next(), null)
    assert.equal(story.snapshot().alignmentBinding?.sinceMs, epoch + 10)
  })

  test('ends with the laggard revoked (edge case 3), idle, or dispatched', () => {
    const hold = () => {
      const story = new Story().assign('a', group).assign('b', { ...group, idle: 500 })
      story.feed('a', [1000]).feed('b', [1000])
      story.all()
      story.feed('a', [2000])
      assert.equal(story.next(), null)
      return story
    }
    assert.equal(hold().revoke('b').next(), 'a@2000/2000')
    assert.equal(hold().at(500).next(), 'a@2000/2000')
    assert.equal(hold().feed('b', [1950]).next(), 'b@1950/1950')
  })

  test('of a group of one never holds (edge case 5)', () => {
    const story = new Story().assign('a', group).assign('b')
    story.feed('b', [1]).feed('a', [10, 100_000])
    assert.equal(story.all().length, 3)
  })

  test('goes by the drift of the partition that would go (edge case 6)', () => {
    const story = new Story().assign('a', { group: 'g', drift: 10 }).assign('b', { group: 'g', drift: 500 })
    story.feed('a', [1000]).feed('b', [1000])
    story.all()
    story.feed('b', [1500])
    assert.equal(story.next(), 'b@1500/1000')
    story.revoke('b').assign('b', { group: 'g', drift: 500 }).feed('b', [1000]).all()
    story.feed('a', [1011])
    assert.equal(story.next(), null)
  })

  test('does not wait for a partition that was seen to be empty and never had a record', () => {
    const story = new Story().assign('a', group).assign('b', group)
    story.feed('a', [1000])
    assert.equal(story.next(), null, 'nobody has looked whether b has something')
    story.empty('b')
    assert.equal(story.next(), 'a@1000/-')
  })

  test('nor for idle ones (FLINK-32496), nor those of other groups', () => {
    const story = new Story()
      .assign('a', group)
      .assign('b', { ...group, idle: 10 })
      .assign('c', { group: 'h' })
    story.empty('b', 'c').feed('c', [1]).all()
    story.at(10).feed('a', [5000])
    assert.equal(story.next(), 'a@5000/1')
  })

  test('compares without overflow (FLINK-31632)', () => {
    const story = new Story().assign('a', group).assign('b', group)
    story.feed('a', [0]).feed('b', [Number.MAX_SAFE_INTEGER])
    story.next()
    assert.equal(story.next(), null)
    assert.equal(story.snapshot().alignmentBinding?.partition, 'b:0')
    story.revoke('a')
    assert.equal(story.next(), `b@${Number.MAX_SAFE_INTEGER}/${Number.MAX_SAFE_INTEGER}`)
    story
      .assign('a', { ...group, ooo: 1000 })
      .feed('a', [-1e300])
      .all()
    assert.equal(story.shown('b').driftFromGroupMinMs, Number.MAX_SAFE_INTEGER)
  })

  test('is derived anew when an idle partition wakes (FLINK-40475)', () => {
    const story = new Story().assign('a', group).assign('b', { ...group, idle: 100 })
    story.feed('a', [1000]).feed('b', [1000])
    story.all()
    story.at(100).feed('a', [3000]).all()
    assert.deepEqual(story.snapshot().alignmentGroupMins, { g: 3000 })
    story.feed('b', [1010]).all()
    assert.deepEqual(story.snapshot().alignmentGroupMins, { g: 1010 })
    story.feed('a', [3001])
    assert.equal(story.next(), null)
  })

  test('keeps since when a hold lasts over pause and backpressure, where no binding is shown', () => {
    const story = new Story().assign('a', group).assign('b', group)
    story.feed('a', [1000]).feed('b', [1000])
    story.all()
    story.at(10).feed('a', [2000])
    story.next()
    for (const cause of ['pause', 'backpressure'] as const) {
      story.watermarks.suspend(cause, story.now)
      assert.equal(story.next(), null)
      assert.equal(story.snapshot().alignmentBinding, null)
      assert.equal(story.shown('a').alignmentHeld, true)
      story.at(story.now + 50)
      story.watermarks.resume(cause, story.now)
      story.next()
      assert.equal(story.snapshot().alignmentBinding?.sinceMs, epoch + 10)
    }
  })

  test('adds up for how long it held heads of a partition', () => {
    const story = new Story().assign('a', group).assign('b', group)
    const total = (now: number): number => story.at(now).shown('a').alignmentHeldTotalMs
    story.feed('a', [1000]).feed('b', [1000])
    story.all()
    story.at(10).feed('a', [2000])
    assert.equal(story.next(), null)
    assert.deepEqual([total(10), total(70)], [0, 60])
    story.at(110).feed('b', [2000])
    story.all()
    assert.equal(total(500), 100)
    story.feed('a', [3000])
    assert.equal(story.next(), null)
    assert.equal(total(540), 140)
    story.watermarks.headDiscarded(story.handle('a'), 550)
    assert.deepEqual([total(900), story.shown('b').alignmentHeldTotalMs], [150, 0])
  })

  test('does not wait longer than the most that it may', () => {
    const story = new Story({ maxHoldMs: 200 }).assign('a', group).assign('b', group)
    story.feed('a', [1000]).feed('b', [1000])
    story.all()
    story.at(10).feed('a', [2000, 3000])
    assert.equal(story.next(), null)
    assert.equal(story.watermarks.nextDeadline(), 210)
    assert.deepEqual([story.watermarks.holdMs(110), story.at(209).next()], [100, null])
    assert.equal(story.watermarks.tick(210), true)
    story.at(210)
    assert.equal(story.next(), 'a@2000/1000')
    assert.equal(story.next(), 'a@3000/1000', 'nor for the same laggard again')
    story.feed('b', [1100]).all()
    story.feed('a', [4000])
    assert.equal(story.next(), null, 'until that had a record')
  })

  test('the wait of a hold is no sign of idleness: the last event time moves on by it', () => {
    const story = new Story()
      .assign('a', { ...group, idle: 300 })
      .assign('b', group)
      .assign('x', { idle: 300 })
    story.feed('a', [1000]).feed('b', [1000]).feed('x', [1000])
    story.all()
    story.at(100).feed('a', [2000])
    assert.equal(story.next(), null)
    story.at(150).feed('x', [2500])
    story.at(1000)
    const { idle, lastEventTimeMs } = story.shown('x')
    assert.deepEqual([idle, lastEventTimeMs], [false, epoch], 'older than its timeout, and not idle')
    story.feed('b', [1500])
    assert.equal(story.next(), 'b@1500/1500')
    assert.equal(story.shown('x').lastEventTimeMs, epoch + 850, 'by the 850 ms that it had something buffered')
    assert.equal(story.shown('a').lastEventTimeMs, epoch + 900)
    assert.equal(story.shown('b').lastEventTimeMs, epoch + 1000)
  })

  test('shows drift and minimum (R40)', () => {
    const story = new Story().assign('a', { group: 'g', drift: 1e9, idle: 100 }).assign('b', { group: 'g', drift: 1e9 })
    story.assign('x')
    assert.deepEqual(story.snapshot().alignmentGroupMins, {})
    story.feed('a', [100]).feed('b', [700]).feed('x', [1])
    story.all()
    assert.deepEqual(story.snapshot().alignmentGroupMins, { g: 100 })
    const drifts = ['a', 'b', 'x'].map((name) => story.shown(name).driftFromGroupMinMs)
    assert.deepEqual(drifts, [0, 600, null])
    story.at(100)
    assert.deepEqual(story.snapshot().alignmentGroupMins, { g: 700 })
    assert.equal(story.shown('a').driftFromGroupMinMs, -600)
    assert.deepEqual(story.revoke('a').revoke('b').snapshot().alignmentGroupMins, {}, 'nobody is in it')
  })

  test('keeps the last minimum when no member counts any more (R40)', () => {
    const story = new Story().assign('a', { ...group, idle: 100 }).assign('b', { ...group, idle: 100 })
    story.feed('a', [100]).feed('b', [150])
    story.all()
    story.at(100)
    assert.deepEqual(story.snapshot().alignmentGroupMins, { g: 100 })
  })

  test('also the one of a member that counted last and was revoked', () => {
    const story = new Story().assign('a', { ...group, idle: 100 }).assign('b', group)
    story.feed('a', [100]).feed('b', [150])
    story.all()
    story.at(100).feed('b', [170]).all()
    assert.deepEqual(story.revoke('b').snapshot().alignmentGroupMins, { g: 170 })
  })
})
