/**
 * How much is let in ahead of the lanes. A commit waits for every record before its mark, so what may be before it
 * follows from how fast the lanes have been: a quick function has thousands of records before it, one that takes a
 * second has two. Nothing is known of a function at first, and little is let in; that grows as it comes through.
 *
 * Where functions are asynchronous many keys are worked on at once, but each of them in order: of one key no more is let
 * in than is through in time. Lanes then tell of each key whose record they are done with.
 */
import { type CounterLayout, laneIndex } from '../../../base/counters.ts'
import type { LanePaceSnapshot } from '../../../view/view.ts'
import { KeyCounts } from './key-counts.ts'
import { growth, LanePace, least, mostAfter, patienceMs, sampleMs, someRecords, type Together } from './lane-pace.ts'

/** What is let in ahead of synchronous functions is as much as they do within the commit interval, within these bounds. */
const shortestMs = 50
const longestMs = 250
/** As many as this are sent in several messages. */
const manyRecords = 512

/** Where nothing is let in it is looked again how far the lanes have come; most of this they tell by themselves. */
const shortestPauseMs = 2
const longestPauseMs = 20

export interface AdmissionOptions {
  readonly laneCounters: readonly Float64Array[]
  readonly layout: CounterLayout
  readonly commitIntervalMs: number
  /** Lanes hand records to one another: what one lets through comes to another. */
  readonly levels: boolean
}

export class Admission {
  readonly #lanes: readonly LanePace[]
  readonly #levels: boolean
  readonly #aheadMs: number
  /** How soon another look may find more room. */
  pauseMs = shortestPauseMs
  /** How many more each lane may be given before the next look; with levels all of them, in the first place. */
  readonly #room: Float64Array
  readonly #given: Float64Array
  /** With levels: what all lanes have done at a time, for what one of them is given most of them do in part. */
  #most = least
  #counted = 0
  #countedAt: number
  /** A lane counts by key. */
  #byKey = false
  #perKey = Number.POSITIVE_INFINITY
  #closed = false
  /** By sub-topology: all lanes know it, so that only room counts, and how many of the key there are. */
  readonly #known: Uint8Array

  constructor({ laneCounters, layout, commitIntervalMs, levels }: AdmissionOptions, now: number) {
    this.#given = new Float64Array(laneCounters.length)
    this.#lanes = laneCounters.map((block, lane) => new LanePace(block, this.#given, lane, layout, now))
    this.#levels = levels
    this.#countedAt = now
    this.#aheadMs = Math.min(longestMs, Math.max(shortestMs, commitIntervalMs))
    this.#room = new Float64Array(laneCounters.length).fill(least)
    this.#known = new Uint8Array(layout.subtopologies)
  }

  /** To be called before anything is let in: takes in what the lanes have done meanwhile. */
  look(now: number): void {
    let arrived = 0
    let handed = 0
    let given = 0
    let finished = 0
    let longest = 0
    let slowestMs = 0
    for (const lane of this.#lanes) {
      arrived += lane.block[laneIndex.arrivedRecords] as number
      handed += lane.block[laneIndex.givenRecords] as number
      finished += lane.block[laneIndex.finishedRecords] as number
      given += lane.given
      longest = Math.max(longest, lane.block[laneIndex.longestChain] as number)
      slowestMs = Math.max(slowestMs, lane.slowestMs)
    }
    this.pauseMs = Math.max(shortestPauseMs, Math.min(longestPauseMs, slowestMs / 4))
    this.#perKey = LanePace.perKey(slowestMs)
    this.#closed = longest > this.#perKey
    const goesOn = given + handed > finished
    for (const lane of this.#lanes) lane.look(now)
    const together = this.#levels ? this.#together(now, finished) : undefined
    const underWay = Math.max(0, handed - arrived) / this.#lanes.length
    const each = given === 0 ? 1 : 1 + handed / given
    let smallest = Number.POSITIVE_INFINITY
    for (let i = 0; i < this.#lanes.length; i++) {
      const lane = this.#lanes[i] as LanePace
      if (lane.pending === 0 && !goesOn) lane.keys?.clear()
      const window = lane.window(now, this.#aheadMs, together)
      const free = window - lane.pending - underWay
      // A lane that has enough before it gets more at once later, rather than a little each time: messages cost.
      const isEnough = window >= manyRecords && free * growth < window && lane.callMs === 0
      const room = isEnough ? 0 : Math.ceil(free / each)
      this.#room[i] = room
      if (room < smallest) smallest = room
    }
    // Whichever lane a record comes to in the end, there is room for it.
    if (this.#levels) this.#room.fill(smallest)
    for (let i = 0; i < this.#known.length; i++)
      if (this.#known[i] === 0 && this.#lanes.every((lane) => lane.knows(i))) this.#known[i] = 1
  }

  /**
   * A lane that gets few of the records does few at a time, and of one that gets none nothing is known: what they may have
   * before them follows from what all lanes do, or the rarest would hold all of them at a record at a time.
   */
  #together(now: number, finished: number): Together {
    const done = finished - this.#counted
    const isDry = this.#lanes.every(({ pending }) => pending === 0)
    const spent = now - this.#countedAt
    if (done > 0 && (isDry || spent >= sampleMs)) this.#most = mostAfter(this.#most, done, done / Math.max(1, spent))
    if (isDry || (done > 0 && spent >= sampleMs)) {
      this.#counted = finished
      this.#countedAt = now
    }
    let slowest = Number.POSITIVE_INFINITY
    for (const lane of this.#lanes) if (lane.isKnown && lane.rate < slowest) slowest = lane.rate
    return { most: this.#most, slowest: slowest === Number.POSITIVE_INFINITY ? 0 : slowest }
  }

  /** Gives the lane a record of this key, if it may have one. This runs for every record: mostly room is all that counts. */
  takes(lane: number, subtopology: number, slot: number): boolean {
    if (this.#known[subtopology] === 0 || this.#closed) {
      if (!this.admits(lane, subtopology, slot)) return false
      this.gave(lane, subtopology, slot)
      return true
    }
    const at = this.#levels ? 0 : lane
    const room = this.#room[at] as number
    if (room <= 0) return false
    if (this.#byKey && !this.#takesKey(lane, slot)) return false
    this.#room[at] = room - 1
    this.#given[lane]!++
    return true
  }

  /** Whether the lane may be given a record of this key. */
  admits(lane: number, subtopology: number, slot: number): boolean {
    if (this.#closed) return false
    const pace = this.#lanes[lane] as LanePace
    const isOneMore = (this.#room[this.#levels ? 0 : lane] as number) > 0 && pace.admits(subtopology)
    // With levels nobody knows which lane it comes to in the end, nor of which key.
    if (!isOneMore) return !this.#levels && pace.admitsFirst(slot)
    return !this.#byKey || this.#admitsKey(lane, slot)
  }

  #admitsKey(lane: number, slot: number): boolean {
    const { keys } = this.#lanes[lane] as LanePace
    return keys === undefined || slot < 0 || keys.of(slot) < this.#perKey
  }

  #takesKey(lane: number, slot: number): boolean {
    const { keys } = this.#lanes[lane] as LanePace
    return keys === undefined || slot < 0 || keys.addBelow(slot, this.#perKey)
  }

  /** The lane was given a record; a slot of -1: it has neither key nor partition. */
  gave(lane: number, subtopology: number, slot: number): void {
    this.#given[lane]!++
    ;(this.#lanes[lane] as LanePace).gave(subtopology, slot)
    this.#room[this.#levels ? 0 : lane]!--
    if (this.#byKey) this.#gaveKey(lane, slot)
  }

  #gaveKey(lane: number, slot: number): void {
    const { keys } = this.#lanes[lane] as LanePace
    if (keys !== undefined && slot >= 0) keys.add(slot)
  }

  /** What each lane has before it, may have, and does in a second; for people. */
  paces(): LanePaceSnapshot[] {
    return this.#lanes.map((lane, i) => ({
      pendingRecords: lane.pending,
      mayPendRecords: lane.pending + Math.max(0, this.#room[this.#levels ? 0 : i] as number),
      recordsPerSecond: Math.round(lane.rate * 100_000) / 100,
      slowestCallMs: Math.round(lane.slowestMs * 10) / 10,
    }))
  }

  /** How long a commit is meant to wait for its lanes, as they work now. */
  get aimMs(): number {
    let slowestMs = 0
    for (const { slowestMs: each } of this.#lanes) slowestMs = Math.max(slowestMs, each)
    const slow = slowestMs > this.#aheadMs / someRecords || this.#lanes.some(({ callMs }) => callMs > 0)
    return Math.round(Math.max(slow ? patienceMs : this.#aheadMs, least * slowestMs))
  }

  /** A lane is done with records of these keys. */
  finished(lane: number, slots: readonly number[]): void {
    const pace = this.#lanes[lane] as LanePace
    // Before its first word nothing was counted: that lane tells of none whose functions have all been synchronous.
    pace.keys ??= new KeyCounts()
    this.#byKey = true
    for (const slot of slots) pace.keys.remove(slot)
  }
}
