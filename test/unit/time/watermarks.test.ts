import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { PartitionKey } from '../../../src/base/ids.ts'
import { noHead, Watermarks, type WatermarksOptions } from '../../../src/time/watermarks.ts'
import type { PartitionWatermarkReport, WatermarkReport } from '../../../src/time/watermark-report.ts'
import type { WatermarkSnapshot } from '../../../src/engine/view.ts'

const epoch = 1_700_000_000_000

/** Partitions `a`, `b`, … with one record at a time fed, so that a case reads as a story. */
class Story {
  readonly watermarks: Watermarks
  readonly #queues = new Map<string, number[]>()
  readonly #offsets = new Map<string, number>()
  now = 0

  constructor(options: WatermarksOptions = {}) {
    this.watermarks = new Watermarks({ evidenceTtlMs: 1e12, ...options })
  }

  assign(name: string, timing: { ooo?: number; idle?: number; group?: string; drift?: number } = {}): this {
    const { ooo = 0, idle = 0, group, drift = 0 } = timing
    const alignment = group === undefined ? undefined : { group, maxDriftMs: drift }
    this.watermarks.assign({ topic: name, partition: 0 }, { maxOutOfOrdernessMs: ooo, idlenessMs: idle, alignment })
    this.#queues.set(name, [])
    return this
  }

  revoke(name: string): this {
    this.watermarks.revoke({ topic: name, partition: 0 }, this.now)
    return this
  }

  handle(name: string): number {
    return this.watermarks.handle(name, 0)
  }

  /** Records arrive; the last fetch reached the end of the log unless `lag` says otherwise. */
  feed(name: string, timestamps: readonly number[], lag = 0): this {
    const queue = this.#queues.get(name) as number[]
    const empty = this.#head(name) === undefined
    queue.push(...timestamps)
    if (empty && queue.length > 0) this.#arrive(name)
    this.watermarks.evidence(this.handle(name), lag, false, this.now)
    return this
  }

  /** A fetch that found nothing. */
  empty(...names: string[]): this {
    for (const name of names) this.watermarks.evidence(this.handle(name), 0, false, this.now)
    return this
  }

  at(now: number): this {
    this.now = now
    this.watermarks.tick(now)
    return this
  }

  /** Dispatches one record; answers `name@timestamp/watermark`, or null when none may go. */
  next(): string | null {
    const p = this.watermarks.pick(this.now)
    if (p < 0) return null
    const name = [...this.#queues.keys()].find((each) => this.handle(each) === p) as string
    const queue = this.#queues.get(name) as number[]
    const timestamp = queue.shift() as number
    const offset = (this.#offsets.get(name) ?? 0) + 1
    this.#offsets.set(name, offset)
    const watermark = this.watermarks.dispatched(p, queue[0] ?? noHead, offset, this.now)
    return `${name}@${timestamp}/${watermark === Number.NEGATIVE_INFINITY ? '-' : watermark}`
  }

  all(): string[] {
    const order: string[] = []
    for (let each = this.next(); each !== null; each = this.next()) order.push(each)
    return order
  }

  snapshot(): WatermarkReport {
    return this.watermarks.snapshot(this.now, epoch + this.now)
  }

  shown(name: string): PartitionWatermarkReport {
    return this.snapshot().partitions[`${name}:0`] as PartitionWatermarkReport
  }

  get global(): number | null {
    return this.snapshot().globalMs
  }

  #head(name: string): number | undefined {
    return this.#queues.get(name)?.[0]
  }

  #arrive(name: string): void {
    this.watermarks.headArrived(this.handle(name), this.#head(name) as number, this.#offsets.get(name) ?? 0, this.now)
  }
}

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

  test('can be set back to a commit, the one time it falls', () => {
    const story = new Story().assign('a', { ooo: 10 })
    story.feed('a', [100, 200])
    story.all()
    const { watermarks } = story
    watermarks.headDiscarded(story.handle('a'), 0)
    watermarks.restore(story.handle('a'), 100)
    watermarks.restoreGlobal(90)
    watermarks.resetHolds()
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
    story.at(600)
    story.watermarks.evidence(story.handle('a'), 0, true, 600)
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
    story.empty('a')
    story.at(2300).empty('a')
    story.at(2600).empty('a')
    assert.equal(story.watermarks.nextDeadline(), 2700)
    assert.equal(story.at(2700).shown('a').idle, true)
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
})

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
      lastEventTimeMs: null,
      idlenessTimeoutMs: 0,
      alignmentGroup: null,
      alignmentHeld: false,
      driftFromGroupMinMs: null,
    })
    assert.equal(story.feed('b', [1]).next(), 'b@1/-')
  })
})
