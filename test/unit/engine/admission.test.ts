/** What is let in ahead of a lane: it may turn slow with any record, and a commit waits for all that was let in. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type CounterLayout, finishedSlot, laneBlockLength, laneIndex, newBlock } from '../../../src/base/counters.ts'
import { Admission } from '../../../src/engine/input/admission/admission.ts'

const layout: CounterLayout = { nodes: 1, subtopologies: 1, stores: [], sourceTopics: ['in'], sinkTopics: [] }
const lookEveryMs = 2

/** A lane that does what it was given, in its order, and tells of it as a lane does. */
class Lane {
  readonly block = newBlock(laneBlockLength(layout))
  readonly admission: Admission
  readonly #isAsync: boolean
  readonly #queue: number[] = []
  #now = 0
  #done = 0

  constructor(isAsync: boolean) {
    this.#isAsync = isAsync
    this.admission = new Admission(
      { laneCounters: [this.block], layout, commitIntervalMs: 100, levels: false },
      this.#now,
    )
    if (isAsync) this.admission.finished(0, [])
  }

  get pending(): number {
    return this.#queue.length
  }

  /** So long with a backlog of these keys and so many records a millisecond; the most that waited at a time. */
  works(ms: number, recordsPerMs: number, slotOf: (n: number) => number): number {
    let most = 0
    let n = 0
    for (const endMs = this.#now + ms; this.#now < endMs; this.#now += lookEveryMs) {
      this.admission.look(this.#now)
      for (; this.admission.takes(0, 0, slotOf(n)); n++) this.#queue.push(slotOf(n))
      most = Math.max(most, this.pending)
      this.#work(Math.min(this.pending, recordsPerMs * lookEveryMs), recordsPerMs)
    }
    return most
  }

  #work(records: number, recordsPerMs: number): void {
    this.#done += records
    const done = this.#queue.splice(0, records)
    this.block[laneIndex.finishedRecords] = this.#done
    this.block[finishedSlot(layout, 0)] = this.#done
    this.block[laneIndex.occupiedMs]! += records / recordsPerMs
    this.block[laneIndex.slowestMs] = 1 / recordsPerMs
    if (!this.#isAsync) return
    this.block[laneIndex.callMs] = 1 / recordsPerMs
    this.admission.finished(0, done)
  }
}

describe('what is let in ahead of quick functions', () => {
  test('synchronous ones have what they do in a moment before them', () => {
    const most = new Lane(false).works(2000, 100, (n) => n % 50)
    assert.ok(most > 2000 && most <= 4096, `${most} records`)
  })

  test('asynchronous ones have fewer', () => {
    const most = new Lane(true).works(2000, 100, (n) => n % 50)
    assert.ok(most > 500 && most <= 1024, `${most} records`)
  })

  test('and of one key fewer still: they would be done one after the other', () => {
    const most = new Lane(true).works(2000, 100, () => 7)
    assert.ok(most > 200 && most <= 512, `${most} records`)
  })
})

describe('what is let in before anything has come through', () => {
  /** Calls that are all under way, and none over; how many a lane is given of these keys. */
  function given(slotOf: (n: number) => number, levels = false): number {
    const block = newBlock(laneBlockLength(layout))
    const admission = new Admission({ laneCounters: [block], layout, commitIntervalMs: 100, levels }, 0)
    let n = 0
    for (let now = 0; now < 100; now += lookEveryMs) {
      admission.look(now)
      while (admission.takes(0, 0, slotOf(n))) n++
      block[laneIndex.inFlightAsync] = new Set(Array.from({ length: n }, (_, i) => slotOf(i))).size
    }
    return n
  }

  test('a call of another key takes no longer beside those that are under way', () => {
    assert.equal(
      given((n) => n),
      8,
    )
  })

  test('one of the same key would wait for them', () => {
    assert.equal(
      given(() => 7),
      2,
    )
    assert.equal(
      given((n) => n % 3),
      3,
    )
  })

  test('where records change lanes nobody knows beside what they will be', () => {
    assert.equal(
      given((n) => n, true),
      2,
    )
  })
})

describe('what is let in ahead of lanes that hand records to one another', () => {
  /** Each lane does what it was given until the next look, the first ones nearly all of it; how much is let in at the end. */
  function letInAtATime(shares: readonly number[]): number {
    const blocks = shares.map(() => newBlock(laneBlockLength(layout)))
    const admission = new Admission({ laneCounters: blocks, layout, commitIntervalMs: 100, levels: true }, 0)
    const laneOf = shares.flatMap((share, lane) => Array.from({ length: share }, () => lane))
    let n = 0
    let atATime = 0
    for (let now = 0; now < 500; now += lookEveryMs) {
      admission.look(now)
      const given = shares.map(() => 0)
      atATime = 0
      for (let lane = laneOf[n % laneOf.length]; lane !== undefined && admission.takes(lane, 0, n); n++) {
        given[lane]!++
        atATime++
        lane = laneOf[(n + 1) % laneOf.length]
      }
      for (const [lane, block] of blocks.entries()) {
        block[laneIndex.finishedRecords]! += given[lane] as number
        block[finishedSlot(layout, 0)]! += given[lane] as number
        block[laneIndex.occupiedMs]! += (given[lane] as number) / 100
        block[laneIndex.slowestMs] = 0.01
      }
    }
    return atATime
  }

  test('is many records at a time, however many the lanes', () => {
    for (const lanes of [1, 2, 4, 8, 16]) {
      const records = letInAtATime(Array.from({ length: lanes }, () => 1))
      assert.ok(records >= 1000, `${records} records with ${lanes} lanes`)
    }
  })

  test('a lane that gets few records, or none, does not hold the others at a record at a time', () => {
    for (const shares of [
      [50, 50, 50, 1],
      [50, 50, 50, 0],
    ]) {
      const records = letInAtATime(shares)
      assert.ok(records >= 500, `${records} records where lanes get ${shares.join(', ')}`)
    }
  })
})
