import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { epoch, Story } from './story.ts'

describe('idleness', () => {
  test('begins exactly when the timeout is over, counted from the last dispatch (FLINK-40503)', () => {
    const story = new Story().assign('a', { idle: 1000 })
    story.at(400).feed('a', [5])
    story.next()
    assert.equal(story.watermarks.nextDeadline(), 1400)
    assert.equal(story.at(1399).shown('a').idle, false)
    assert.equal(story.at(1400).shown('a').idle, true)
    assert.equal(story.shown('a').lastEventTimeMs, epoch + 400)
    assert.equal(story.watermarks.nextDeadline(), Number.POSITIVE_INFINITY)
  })

  test('lets time come as far, whether it is looked at at once or late', () => {
    for (const looks of [[100, 140], [140]]) {
      const story = new Story().assign('a', { idle: 100 }).assign('b', { idle: 100 })
      story.feed('a', [50])
      story.next()
      story.at(40).feed('b', [70])
      story.all()
      for (const at of looks) story.at(at)
      assert.deepEqual([story.shown('a').idle, story.shown('b').idle, story.global], [true, true, 70])
    }
  })

  test('is off with a timeout of 0', () => {
    const story = new Story().assign('a').empty('a').at(1e9)
    assert.deepEqual([story.shown('a').idle, story.shown('a').idlenessTimeoutMs], [false, 0])
  })

  test('of a partition that never had a record counts from the first fetch that found nothing (FLINK-32414)', () => {
    const story = new Story().assign('a', { idle: 1000 })
    story.at(5000)
    assert.equal(story.shown('a').idle, false, 'nobody has looked yet')
    story.empty('a').at(5999)
    assert.equal(story.shown('a').idle, false)
    assert.deepEqual([story.at(6000).shown('a').idle, story.shown('a').lastEventTimeMs], [true, null])
  })

  test('does not count time in which records are buffered, pauses, or lies behind (FLIP-471)', () => {
    const story = new Story().assign('a', { idle: 1000 }).assign('b')
    story.feed('b', [1]).feed('a', [5])
    story.at(5000)
    assert.equal(story.shown('a').idle, false, 'it waits behind b, it is not empty')
    story.all()
    story.at(5400)
    story.watermarks.suspend('pause', 5400)
    assert.equal(story.at(9000).shown('a').idle, false, 'nothing is fetched during a pause')
    story.watermarks.resume('pause', 9000)
    assert.equal(story.watermarks.nextDeadline(), 9600)
    story.at(9100).feed('a', [], 7)
    assert.equal(story.at(20_000).shown('a').idle, false, 'the log has more than was fetched')
    story.empty('a')
    assert.equal(story.watermarks.nextDeadline(), 20_500)
    assert.equal(story.at(20_500).shown('a').idle, true)
  })

  test('does not count time in which the fetch fails', () => {
    const story = new Story().assign('a', { idle: 1000 }).empty('a')
    story.at(600).empty('a').at(800)
    story.watermarks.evidence(story.handle('a'), 0, true, 800)
    assert.equal(story.at(9000).shown('a').idle, false)
    story.empty('a')
    assert.equal(story.at(9399).shown('a').idle, false)
    assert.equal(story.at(9400).shown('a').idle, true)
  })

  test('counts it where the application says so', () => {
    const story = new Story({ onFetchError: 'count' }).assign('a', { idle: 1000 })
    story.watermarks.evidence(story.handle('a'), 0, true, 0)
    assert.equal(story.at(1000).shown('a').idle, true)
  })

  test('does not count time for which the last empty fetch is no proof any more', () => {
    const story = new Story({ evidenceTtlMs: 300 }).assign('a', { idle: 1000 }).empty('a')
    assert.equal(story.at(2000).shown('a').idle, false)
    for (const now of [2000, 2300, 2600, 2900]) story.at(now).empty('a')
    assert.equal(story.watermarks.nextDeadline(), 3000)
    assert.equal(story.at(3000).shown('a').idle, true)
  })

  test('does not count time in which the broker does not answer, be it asked before or behind that', () => {
    for (const askedAt of [1000, 20_000]) {
      const story = new Story({ evidenceTtlMs: 300 }).assign('a', { idle: 1000 })
      for (const now of [0, 200, 400]) story.at(now).empty('a')
      story.unansweredAt(20_000)
      story.watermarks.evidence(story.handle('a'), 0, false, 20_000, { askedAt })
      for (const now of [20_000, 20_200, 20_400]) assert.equal(story.at(now).empty('a').shown('a').idle, false)
      assert.equal(story.at(20_599).shown('a').idle, false)
      assert.equal(story.at(20_600).shown('a').idle, true)
    }
  })

  test('waits for an answer of the time at which it begins, which a record may contradict', () => {
    const story = new Story().assign('a', { idle: 1000 }).assign('b', { idle: 1000 }).empty('a', 'b')
    assert.equal(story.watermarks.nextDeadline(), 1000)
    assert.deepEqual(story.unansweredAt(1000), ['a:0', 'b:0'])
    assert.deepEqual(story.unansweredAt(1200), [], 'each is asked for once')
    story.watermarks.evidence(story.handle('a'), 0, false, 1200, { askedAt: 900 })
    assert.deepEqual(story.unansweredAt(1200), ['a:0'], 'that answer was of an earlier time')
    story.watermarks.evidence(story.handle('a'), 0, false, 1300, { askedAt: 1200 })
    story.watermarks.evidence(story.handle('b'), 1, false, 1300, { askedAt: 1000 })
    assert.deepEqual([story.at(1300).shown('a').idle, story.at(9000).shown('b').idle], [true, false])
    assert.equal(story.shown('a').idleTotalMs, 8000, 'it was idle once its timeout was over')
  })

  test('does not count time in which records were buffered, though an answer is of an earlier one', () => {
    const story = new Story({ evidenceTtlMs: 300 }).assign('a', { idle: 1000 })
    story.feed('a', [5]).at(5000).next()
    story.watermarks.evidence(story.handle('a'), 0, false, 5100, { askedAt: 4000 })
    for (let now = 5100; now < 6100; now += 100) assert.equal(story.at(now).empty('a').shown('a').idle, false)
    assert.equal(story.at(6100).shown('a').idle, true)
  })

  test('ends when a record arrives, which then counts though it is old (edge case 4)', () => {
    const story = new Story().assign('a').assign('b', { idle: 100 })
    story.feed('a', [500]).feed('b', [10])
    story.all()
    story.at(100)
    assert.equal(story.global, 500)
    story.feed('a', [600]).feed('b', [20])
    assert.equal(story.shown('b').idle, false)
    assert.equal(story.next(), 'b@20/500')
    assert.equal(story.next(), 'a@600/500')
    assert.equal(story.shown('b').watermarkMs, 20)
  })

  test('ends when it is known that records lie at the broker, before what others have at hand counts', () => {
    const story = new Story().assign('a', { task: 't' }).assign('b', { idle: 100, task: 't' })
    story.feed('a', [500]).feed('b', [10]).all()
    story.at(100)
    assert.equal(story.global, 500)
    story.feed('a', [900]).feed('b', [], 3)
    assert.deepEqual([story.shown('b').idle, story.next(), story.global], [false, null, 500])
    story.feed('b', [600], 2)
    assert.equal(story.next(), 'b@600/600')
  })

  test('waits for what an open transaction holds back, and holds up nobody who has something to read', () => {
    const story = new Story().assign('a', { task: 't' }).assign('b', { idle: 100, task: 't' })
    story.feed('a', [500]).feed('b', [10]).all()
    const withheld = (): void => story.watermarks.evidence(story.handle('b'), 0, false, story.now, { isWithheld: true })
    withheld()
    assert.equal(story.at(1000).shown('b').idle, false)
    story.empty('b').at(1100)
    assert.equal(story.shown('b').idle, true)
    withheld()
    assert.deepEqual([story.shown('b').idle, story.feed('a', [600]).next(), story.global], [false, 'a@600/500', 500])
  })

  test('goes on behind what has no records, such as the marks of a transaction that was aborted', () => {
    const story = new Story().assign('a', { idle: 1000 }).empty('a').at(1000)
    assert.equal(story.shown('a').idle, true)
    story.at(1500).feed('a', [], 2)
    assert.equal(story.shown('a').idle, false)
    story.at(1510).empty('a')
    assert.equal(story.at(1510).shown('a').idle, true)
    story.at(2000).feed('a', [7])
    story.next()
    assert.deepEqual([story.at(2999).shown('a').idle, story.at(3000).shown('a').idle], [false, true])
  })

  test('of one partition leaves the others their own timeouts', () => {
    const story = new Story().assign('a', { idle: 100 }).assign('b', { idle: 300 }).empty('a', 'b')
    assert.equal(story.watermarks.nextDeadline(), 100)
    story.at(150)
    assert.equal(story.watermarks.nextDeadline(), 300)
    assert.deepEqual([story.shown('a').idle, story.shown('b').idle], [true, false])
  })

  test('a source that has ended does not hold the others for ever (FLINK-35157)', () => {
    const story = new Story().assign('a', { idle: 100, group: 'g' }).assign('b', { idle: 100, group: 'g' })
    story.feed('a', [10]).feed('b', [10, 50])
    story.all()
    assert.equal(story.snapshot().alignmentBinding?.emptyLaggards.join(), 'a:0')
    assert.equal(story.at(100).next(), 'b@50/50')
  })

  test('adds up, without the time in which the partition is awake', () => {
    const story = new Story().assign('a', { idle: 1000 })
    const total = (now: number): number => story.at(now).shown('a').idleTotalMs
    story.empty('a')
    assert.deepEqual([total(999), total(1000), total(1400)], [0, 0, 400])
    story.at(1500).feed('a', [5])
    story.all()
    assert.equal(total(2400), 500)
    assert.equal(total(2700), 700)
    story.watermarks.headDiscarded(story.handle('a'), 2800)
    assert.equal(total(5000), 800)
    story.revoke('a').assign('a', { idle: 1000 })
    assert.equal(total(5100), 0)
  })
})
