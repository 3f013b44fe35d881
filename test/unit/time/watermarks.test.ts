import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { PartitionKey } from '../../../src/base/ids.ts'
import type { WatermarkSnapshot } from '../../../src/view/view.ts'
import { noHead, Watermarks } from '../../../src/time/watermarks.ts'
import { epoch, Story } from './story.ts'

describe('which record goes next', () => {
  test('the oldest of all heads, and of equal ones the first by topic and partition', () => {
    const story = new Story().assign('b').assign('a').assign('c')
    story.feed('c', [10, 40]).feed('b', [10, 20]).feed('a', [30, 5])
    assert.deepEqual(
      story.all().map((each) => each.split('/')[0]),
      ['b@10', 'c@10', 'b@20', 'a@30', 'a@5', 'c@40'],
    )
  })

  test('partitions of one topic go by number, not by text', () => {
    const watermarks = new Watermarks()
    const timing = { maxOutOfOrdernessMs: 0, idlenessMs: 0, alignment: undefined }
    const handles = [10, 9, 2].map((partition) => watermarks.assign({ topic: 't', partition }, timing))
    for (const p of handles) watermarks.headArrived(p, 7, 0, 0)
    const order: number[] = []
    for (let p = watermarks.pick(0); p >= 0; p = watermarks.pick(0)) {
      order.push(p)
      watermarks.dispatched(p, noHead, -1, 0)
    }
    assert.deepEqual(order, handles.toReversed())
  })
})

describe('the watermark of a partition (R17)', () => {
  test('is the highest event time dispatched less the out-of-orderness, and unknown before', () => {
    const story = new Story().assign('a', { ooo: 10 })
    assert.equal(story.shown('a').watermarkMs, null)
    story.feed('a', [100, 80, 130])
    assert.equal(story.shown('a').watermarkMs, null, 'what is buffered does not count yet')
    assert.deepEqual(story.all(), ['a@100/90', 'a@80/90', 'a@130/120'])
    assert.equal(story.shown('a').watermarkMs, 120)
    assert.equal(story.watermarks.maxTs(story.handle('a')), 130)
  })
})

describe('the watermark of a partition that is announced', () => {
  const announced = { maxOutOfOrdernessMs: Number.POSITIVE_INFINITY, idlenessMs: 0, alignment: undefined }

  test('is what is announced, whatever its records show, and holds the others back until then', () => {
    const watermarks = new Watermarks()
    const plain = watermarks.assign({ topic: 'a', partition: 0 }, { ...announced, maxOutOfOrdernessMs: 0 })
    const told = watermarks.assign({ topic: 'b', partition: 0 }, announced)
    watermarks.headArrived(told, 900, 0, 0)
    watermarks.headArrived(plain, 1000, 0, 0)
    assert.equal(watermarks.pick(0), told, 'records go in their order all the same')
    assert.equal(watermarks.dispatched(told, 300, 1, 0), Number.NEGATIVE_INFINITY)
    watermarks.pick(0)
    watermarks.dispatched(told, noHead, -1, 0)
    watermarks.pick(0)
    assert.equal(watermarks.dispatched(plain, noHead, -1, 0), Number.NEGATIVE_INFINITY)
    watermarks.announce(told, 700)
    assert.equal(watermarks.global(), 700)
    watermarks.announce(told, 600)
    assert.deepEqual([watermarks.global(), watermarks.maxTs(told)], [700, 700])
    watermarks.announce(told, 5000)
    assert.equal(watermarks.global(), 1000)
  })

  test('goes on after a restart where it was', () => {
    const watermarks = new Watermarks()
    const told = watermarks.assign({ topic: 'b', partition: 0 }, announced)
    watermarks.restore(told, 700)
    assert.equal(watermarks.maxTs(told), 700)
    watermarks.headArrived(told, 650, 0, 0)
    watermarks.pick(0)
    assert.equal(watermarks.dispatched(told, noHead, -1, 0), 700)
  })
})

describe("the application's watermark", () => {
  test('is the least of the partitions, unknown while one that is not idle has none (R42)', () => {
    const story = new Story().assign('a').assign('b')
    story.feed('a', [50])
    assert.equal(story.next(), 'a@50/-')
    assert.equal(story.global, null)
    story.feed('b', [30])
    assert.equal(story.next(), 'b@30/30')
    assert.equal(story.global, 30)
  })

  test('never falls: not by an old record, not by a partition that comes', () => {
    const story = new Story().assign('a')
    story.feed('a', [100, 20])
    assert.deepEqual(story.all(), ['a@100/100', 'a@20/100'])
    story.assign('b').feed('b', [40])
    assert.equal(story.next(), 'b@40/100')
    assert.equal(story.global, 100)
  })

  test('rises when the partition that held it back goes', () => {
    const story = new Story().assign('a').assign('b')
    story.feed('a', [100]).feed('b', [10])
    story.all()
    assert.equal(story.global, 10)
    assert.equal(story.revoke('b').global, 100)
  })

  test('stays when all partitions are idle, and is never infinite (FLINK-32496)', () => {
    const story = new Story().assign('a', { idle: 100 }).assign('b', { idle: 100 })
    story.feed('a', [50]).feed('b', [70])
    story.all()
    story.at(100)
    assert.deepEqual([story.shown('a').idle, story.shown('b').idle], [true, true])
    assert.equal(story.global, 50)
    story.feed('a', [60])
    assert.deepEqual([story.shown('a').idle, story.next()], [false, 'a@60/60'])
  })

  test('is known when the only partitions without a watermark are idle', () => {
    const story = new Story().assign('a').assign('b', { idle: 100 })
    story.empty('b').feed('a', [50])
    story.next()
    assert.equal(story.global, null)
    assert.equal(story.at(100).global, 50)
  })

  test('is known when those with a watermark turn idle at the same moment as those without', () => {
    const story = new Story().assign('a', { idle: 100 }).assign('b', { idle: 100 })
    story.empty('b').feed('a', [50])
    story.all()
    story.at(100)
    assert.deepEqual([story.shown('a').idle, story.shown('b').idle], [true, true])
    assert.equal(story.global, 50)
  })

  test('can be set back to a commit, the one time it falls', () => {
    const story = new Story().assign('a', { ooo: 10 })
    story.feed('a', [100, 200])
    story.all()
    const { watermarks } = story
    watermarks.headDiscarded(story.handle('a'), 0)
    watermarks.restore(story.handle('a'), 100)
    watermarks.restoreGlobal(90)
    assert.deepEqual([story.global, story.shown('a').watermarkMs, watermarks.maxTs(story.handle('a'))], [90, 90, 100])
    assert.equal(story.feed('a', [200]).next(), 'a@200/190')
  })

  test('counts no event time beyond the limit for the future', () => {
    const story = new Story().assign('a').assign('b')
    story.watermarks.setFutureLimit(1000)
    story.feed('a', [99_999, 500]).feed('b', [99_999])
    assert.deepEqual(story.all(), ['a@99999/1000', 'a@500/1000', 'b@99999/1000'])
    assert.equal(story.watermarks.clampedRecords, 2)
  })

  test('a record that brings its partition forward is not late by what comes behind it', () => {
    const story = new Story().assign('a').assign('b').assign('c')
    story.feed('a', [8, 10, 1000]).feed('b', [400, 500]).feed('c', [590, 600])
    story.next()
    // `a` has its next head at 1000 already; that may count from the next record on only.
    story.next()
    assert.equal(story.global, null)
    assert.equal(story.next(), 'b@400/400')
  })
})

describe('the preview of a head that waits behind older ones (R41)', () => {
  test("counts in the application's watermark instead of the own", () => {
    const story = new Story().assign('a').assign('b', { ooo: 5 })
    story.feed('a', [10]).feed('b', [20])
    assert.deepEqual(story.all(), ['a@10/10', 'b@20/10'])
    story.at(50).feed('b', [100]).feed('a', [60, 70])
    assert.deepEqual([story.next(), story.next()], ['a@60/60', 'a@70/70'])
  })

  test('is shown while it is higher, with the time since when the head waits', () => {
    const story = new Story().assign('a').assign('b')
    story.feed('b', [20])
    story.next()
    story.at(5).feed('b', [100])
    assert.deepEqual(Object.keys(story.shown('b')).includes('headHeldSinceMs'), false, 'it is the oldest')
    story.at(7).feed('a', [50])
    const { previewWatermarkMs, headHeldSinceMs, watermarkMs } = story.shown('b')
    assert.deepEqual([watermarkMs, previewWatermarkMs, headHeldSinceMs], [20, 100, epoch + 7])
    assert.deepEqual(['previewWatermarkMs' in story.shown('a'), 'headHeldSinceMs' in story.shown('a')], [false, false])
    story.next()
    assert.equal('headHeldSinceMs' in story.shown('b'), false, 'now it is the oldest')
  })

  test('is not shown while not higher, though the head waits', () => {
    const story = new Story().assign('a').assign('b')
    story.feed('b', [200, 90])
    story.next()
    story.feed('a', [50])
    assert.deepEqual(['previewWatermarkMs' in story.shown('b'), 'headHeldSinceMs' in story.shown('b')], [false, true])
  })

  test('begins anew with every head, and is not touched by a pause', () => {
    const story = new Story().assign('a').assign('b')
    story.feed('b', [20, 60, 80]).feed('a', [50, 70])
    story.at(3)
    story.next()
    assert.equal(story.shown('b').headHeldSinceMs, epoch + 3)
    story.watermarks.suspend('pause', 4)
    story.at(9)
    story.watermarks.resume('pause', 9)
    assert.equal(story.shown('b').headHeldSinceMs, epoch + 3)
    story.next()
    story.at(11)
    story.next()
    assert.equal(story.shown('b').headHeldSinceMs, epoch + 11)
  })
})

describe('what is shown', () => {
  test('has the shape that the engine tells, and nothing without partitions', () => {
    const snapshot: WatermarkSnapshot = new Story().snapshot()
    assert.deepEqual(snapshot, { globalMs: null, alignmentGroupMins: {}, alignmentBinding: null, partitions: {} })
  })

  test('keeps an instant when the wall clock is set anew by a little, and follows a jump', () => {
    const story = new Story().assign('a')
    story.feed('a', [5])
    story.next()
    const last = (wall: number): number | null =>
      story.watermarks.snapshot(100, wall).partitions['a:0' as PartitionKey]?.lastEventTimeMs ?? null
    assert.equal(last(epoch + 100), epoch)
    assert.equal(last(epoch + 103), epoch)
    assert.equal(last(epoch + 3_600_100), epoch + 3_600_000)
  })

  test('a handle names another partition once it was given up', () => {
    const story = new Story().assign('a', { group: 'g', drift: 0 }).assign('b', { group: 'g', drift: 0 })
    const handle = story.handle('a')
    story.feed('a', [10])
    story.revoke('a').assign('z')
    assert.equal(story.handle('z'), handle)
    assert.equal(story.handle('a'), -1)
    assert.deepEqual(story.shown('z'), {
      watermarkMs: null,
      idle: false,
      idleTotalMs: 0,
      lastEventTimeMs: null,
      idlenessTimeoutMs: 0,
      alignmentGroup: null,
      alignmentHeld: false,
      alignmentHeldTotalMs: 0,
      driftFromGroupMinMs: null,
    })
    assert.equal(story.feed('b', [1]).next(), 'b@1/-')
  })
})
