/** One lane as the engine sees it: how fast it is, what it has before it, and how much that may be. */
import { type CounterLayout, finishedSlot, laneIndex } from '../../../base/counters.ts'
import type { KeyCounts } from './key-counts.ts'

/** Of every lane at first: one record at work, and one that waits. No fewer at any time. */
export const least = 2
/** Of calls that are all under way before any has come through: so many of different keys, which do not wait for one another. */
const firstCalls = 8
/** A rate is taken over no less than this, unless the lane has run dry; what took no time is taken to have had this much. */
export const sampleMs = 10
const shortestSampleMs = 0.01
/** In which time at work an older rate is forgotten. */
const memoryMs = 50
/** Answers of asynchronous functions come in crowds, and what they bring to deeper levels is done at once: longer for them. */
const asyncMemoryMs = 1000
/** Of quick functions no more records than this, or what they do within a moment: they may become slow with any record. */
const mostRecords = 4096
const momentMs = 25
/** Of asynchronous ones fewer, unless as many are under way at once: with many records of a key they do not help one another. */
const mostAsync = 1024
const asyncMomentMs = 5
/** Of one key, however quick. */
const mostOfKey = 512
/** As slow as they have been of late they take no longer than this for what is before them. */
const worstMs = 5000
/** Of slow functions some more, or lanes and keys would wait for one another: so many records, within this time. */
export const someRecords = 5
/** What is let in ahead of asynchronous functions, and for one key. */
export const patienceMs = 500
/** Beside records whose calls fail one more is let in after this time, and after twice as long each time: it shows whether any comes through. */
const probeMs = 1000
/** How far what is let in grows at a time. Where all of it is under way at once, more may help. */
export const growth = 4
/** A sub-topology that is done with so many is known. */
const knownRecords = 1024

/** What lanes that hand records to one another are like, for the one that has had few or none. */
export interface Together {
  /** Most records that may be before each of them, whatever its rate. */
  readonly most: number
  /** Records a millisecond of the slowest that is known; 0: of none anything is known. */
  readonly slowest: number
}

/** Most records that may be before a lane: so many times what was done at a time, and what was allowed while that is the rate. */
export function mostAfter(most: number, done: number, rate: number): number {
  return Math.max(growth * done, Math.min(most, growth * rate * patienceMs))
}

export class LanePace {
  readonly #block: Float64Array
  readonly #given: Float64Array
  readonly #lane: number
  pending = 0
  /** Records a millisecond. */
  rate = 0
  /** Records of each key that were let in and are not done; undefined while no function has been asynchronous there. */
  keys: KeyCounts | undefined
  /** Most records that may be before it, whatever its rate. */
  #most = least
  #countedAt: number
  /** Records given when something came through last. */
  #givenThen = 0
  #counted = 0
  #occupiedMs = 0
  /** Records that came through, and how long the lane had something to do; what is older counts for less. */
  #done = 0
  #ms = 0
  #longDone = 0
  #longMs = 0

  /** Nothing has come through yet: the keys of what was given, and how many that may be as all of it is under way. */
  readonly #firstKeys = new Set<number>()
  #mostFirst = 0

  /** By sub-topology: records given, and how many that may be. What comes of one says nothing of another. */
  readonly #givenOf: Float64Array
  readonly #mostOf: Float64Array
  readonly #layout: CounterLayout

  /** `given`: records given to each lane in this run. */
  constructor(block: Float64Array, given: Float64Array, lane: number, layout: CounterLayout, now: number) {
    this.#block = block
    this.#given = given
    this.#lane = lane
    this.#layout = layout
    this.#countedAt = now
    this.#givenOf = new Float64Array(layout.subtopologies)
    this.#mostOf = new Float64Array(layout.subtopologies).fill(least)
  }

  /** The sub-topology may have another record: at first few, until some have come through. */
  admits(subtopology: number): boolean {
    return (this.#givenOf[subtopology] as number) < (this.#mostOf[subtopology] as number)
  }

  /**
   * It may have another, of a key that it was not given yet, although nothing has come through: what it has are calls under
   * way, and one more of another key is over with them.
   */
  admitsFirst(slot: number): boolean {
    return this.given < this.#mostFirst && slot >= 0 && !this.#firstKeys.has(slot)
  }

  /** So much of the sub-topology has come through that as many records of it may be given as of any other. */
  knows(subtopology: number): boolean {
    return this.#mostOf[subtopology] === Number.POSITIVE_INFINITY
  }

  gave(subtopology: number, slot: number): void {
    this.#givenOf[subtopology]!++
    if (this.#firstKeys.size < firstCalls) this.#firstKeys.add(slot)
  }

  get given(): number {
    return this.#given[this.#lane] as number
  }

  get block(): Float64Array {
    return this.#block
  }

  get callMs(): number {
    return this.#block[laneIndex.callMs] as number
  }

  get slowestMs(): number {
    return this.#block[laneIndex.slowestMs] as number
  }

  look(now: number): void {
    const block = this.#block
    const finished = block[laneIndex.finishedRecords] as number
    const occupiedMs = block[laneIndex.occupiedMs] as number
    const pending = Math.max(0, this.given + (block[laneIndex.arrivedRecords] as number) - finished)
    const done = finished - this.#counted
    const dry = pending === 0
    this.pending = pending
    this.#know()
    const underWay = block[laneIndex.inFlightAsync] as number
    if (finished > 0) this.#mostFirst = 0
    else if (underWay > 0 && underWay === pending) this.#mostFirst = Math.min(firstCalls, growth * underWay)
    if (done > 0 && (dry || now - this.#countedAt >= sampleMs)) {
      this.#sample(done, occupiedMs - this.#occupiedMs)
      this.#most = mostAfter(this.#most, done, this.rate)
      this.#counted = finished
      this.#occupiedMs = occupiedMs
      this.#countedAt = now
      this.#givenThen = this.given
    } else if (dry) {
      this.#countedAt = now
      this.#givenThen = this.given
    }
  }

  #know(): void {
    const most = this.#mostOf
    for (let i = 0; i < most.length; i++) {
      if (most[i] === Number.POSITIVE_INFINITY) continue
      const finished = this.#block[finishedSlot(this.#layout, i)] as number
      most[i] = finished < knownRecords ? least + growth * finished : Number.POSITIVE_INFINITY
    }
  }

  /** What a lane does quickly and rarely, such as what it is handed, says as little of its speed as it takes. */
  #sample(done: number, ms: number): void {
    const kept = Math.exp(-ms / memoryMs)
    this.#done = this.#done * kept + done
    this.#ms = this.#ms * kept + ms
    const keptLong = Math.exp(-ms / asyncMemoryMs)
    this.#longDone = this.#longDone * keptLong + done
    this.#longMs = this.#longMs * keptLong + ms
    const isAsync = this.callMs > 0
    this.rate = isAsync
      ? this.#longDone / Math.max(this.#longMs, shortestSampleMs)
      : this.#done / Math.max(this.#ms, shortestSampleMs)
  }

  /** Whether anything has come through it in this run. */
  get isKnown(): boolean {
    return this.#longMs > 0
  }

  /** How many records it may have before it. `together`: of lanes that hand records to one another. */
  window(now: number, aheadMs: number, together?: Together): number {
    const rate = this.isKnown ? this.rate : (together?.slowest ?? 0)
    const window = Math.max(least, Math.floor(Math.min(together?.most ?? this.#most, this.#ahead(now, aheadMs, rate))))
    if (this.#block[laneIndex.failingCalls] === 0) return window
    const probes = Math.floor(Math.log2(1 + (now - this.#countedAt) / probeMs))
    return Math.max(window, this.pending - (this.given - this.#givenThen) + probes)
  }

  #ahead(now: number, aheadMs: number, known: number): number {
    const spent = now - this.#countedAt
    // While nothing comes through it is slower than it was.
    const rate = spent > sampleMs ? Math.min(known, 1 / spent + this.#doneSince() / spent) : known
    const { callMs, slowestMs } = this
    if (callMs === 0) {
      const ahead = Math.min(rate * aheadMs, Math.max(mostRecords, rate * momentMs), worstMs / slowestMs)
      return Math.max(ahead, Math.min(someRecords, rate * patienceMs))
    }
    const underWay = this.#block[laneIndex.inFlightAsync] as number
    const calls = this.pending - underWay < this.pending / growth ? growth : 2
    const ahead = rate * Math.max(aheadMs, patienceMs, calls * callMs)
    return Math.min(ahead, Math.max(mostAsync, rate * asyncMomentMs, growth * underWay))
  }

  /** Of one key, as slow as the slowest call of late. */
  static perKey(slowestMs: number): number {
    return Math.max(least, Math.min(mostOfKey, Math.floor(patienceMs / slowestMs)))
  }

  #doneSince(): number {
    return (this.#block[laneIndex.finishedRecords] as number) - this.#counted
  }
}
