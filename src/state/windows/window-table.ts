/**
 * The rows of a window store, cut into segments of time. Most segments hold windows of one start alone; those are found by
 * the key as it is: no longer name is put together, hashed and compared for each record, and what is over goes by the
 * segment.
 */
import { assert } from '../../base/assert.ts'
import { int64At, int64String } from '../rows/bytes.ts'
import { segmentStart, sequenceString, windowStartOf, windowSuffix } from '../rows/layout.ts'
import { position, SortedKeys } from '../rows/sorted-keys.ts'
import { KeyIndex, type KeyRow } from './window-keys.ts'
import type { SpareColumns } from '../table/row-table.ts'
import { SegmentTable } from './segment-table.ts'

const firstSequence = sequenceString(0)
/** Columns for use again, of all the thread's stores; and the cells that they may have together. */
const spare: SpareColumns[] = []
let spareCells = 0
const mostSpareCells = 65_536

function takeSpare(): SpareColumns | undefined {
  const columns = spare.pop()
  if (columns !== undefined) spareCells -= columns.table.capacity
  return columns
}

function giveSpare(columns: SpareColumns): void {
  const { capacity } = columns.table
  if (spareCells + capacity > mostSpareCells) return
  spareCells += capacity
  spare.push(columns)
}

export class Segment {
  readonly start: number
  readonly before: string
  /** The windows of this start are named by their key alone; those of other starts by key, start and sequence number. */
  readonly commonStart: number
  readonly common: SegmentTable
  others: SegmentTable | undefined
  /** Latest start of a window in here; and a time before which none starts. */
  newest: number
  oldest: number
  /** The rows' key strings in order, from the first ordered reading on. */
  order: SortedKeys | undefined
  /** The rows by key, from the first such reading on. */
  index: KeyIndex | undefined
  /** Generation whose commit takes the segment out, with all that is in it; Infinity: it stays. */
  leavesWith = Number.POSITIVE_INFINITY
  isAttached = true
  /** The backend may have rows of this segment that are not here. */
  isPartial: boolean

  constructor(
    start: number,
    firstWindow: number,
    generation: number,
    isPartial: boolean,
    spare: SpareColumns | undefined,
  ) {
    this.start = start
    this.before = int64String(start)
    this.commonStart = firstWindow
    this.newest = firstWindow
    this.oldest = firstWindow
    this.isPartial = isPartial
    this.common = new SegmentTable(this, int64String(firstWindow) + firstSequence, generation, spare)
  }

  get size(): number {
    return this.common.size + (this.others?.size ?? 0)
  }

  get places(): readonly SegmentTable[] {
    return this.others === undefined ? [this.common] : [this.common, this.others]
  }

  /** Most of its rows are about to go: what they are found by is made anew, should anybody ask. */
  forgetOrders(): void {
    this.order = undefined
    this.index = undefined
  }
}

export class WindowTable {
  readonly #intervalMs: number
  readonly #isPartial: (segment: number) => boolean
  readonly #segments = new Map<number, Segment>()
  /** Starts of the segments, ascending. */
  readonly #starts: number[] = []
  /** Most records in a row belong to windows of one start. */
  #lastStart = Number.NaN
  #last: Segment | undefined
  /** Where `seek` and `add` found or put a row. */
  place: SegmentTable | undefined
  cell = -1
  /** Number of rows. */
  size = 0

  /** `isPartial`: whether a backend may have rows of a segment that is not here. */
  constructor(intervalMs: number, isPartial: (segment: number) => boolean) {
    this.#intervalMs = intervalMs
    this.#isPartial = isPartial
  }

  /** Starts of the segments that are there, ascending. */
  get starts(): readonly number[] {
    return this.#starts
  }

  get segments(): Iterable<Segment> {
    return this.#segments.values()
  }

  /** Segments of which all is here and that stay, though windows in them may start at `time` or before; oldest first. */
  *before(time: number): IterableIterator<Segment> {
    for (const start of [...this.#starts]) {
      if (start > time) return
      const segment = this.#segments.get(start) as Segment
      if (isOver(segment, time)) yield segment
    }
  }

  /** Whether there is such a segment. */
  hasBefore(time: number): boolean {
    for (const start of this.#starts) {
      if (start > time) return false
      if (isOver(this.#segments.get(start) as Segment, time)) return true
    }
    return false
  }

  /** No segment leaves: what was to take them out is not going to be committed. */
  keepAll(): void {
    for (const segment of this.#segments.values()) {
      segment.leavesWith = Number.POSITIVE_INFINITY
      segment.oldest = segment.start
    }
  }

  /** The segment of a window. */
  at(windowStart: number): Segment | undefined {
    if (windowStart !== this.#lastStart) {
      this.#last = this.#segments.get(segmentStart(windowStart, this.#intervalMs))
      this.#lastStart = windowStart
    }
    return this.#last
  }

  /** Finds a window's only (or first) row; where there is none, `place` is where it would be, if that is there. */
  seek(key: string, windowStart: number): boolean {
    const segment = this.at(windowStart)
    this.place = undefined
    this.cell = -1
    if (segment === undefined) return false
    if (segment.commonStart === windowStart) {
      this.place = segment.common
      this.cell = segment.common.table.find(key)
    } else if (segment.others !== undefined) {
      this.place = segment.others
      this.cell = segment.others.table.find(key + int64String(windowStart) + firstSequence)
    }
    return this.cell >= 0
  }

  /** Finds a row by its key string. */
  seekRow(row: string): boolean {
    const segment = this.#segments.get(int64At(row, 0))
    this.place = undefined
    this.cell = -1
    if (segment === undefined) return false
    const isCommon = row.endsWith(segment.common.behind)
    this.place = isCommon ? segment.common : segment.others
    if (this.place === undefined) return false
    this.cell = this.place.table.find(isCommon ? row.slice(8, -windowSuffix) : row.slice(8))
    return this.cell >= 0
  }

  /** The rows of a key in a segment that start in [first, last], by start and sequence number, without those younger. */
  ofKey(segment: Segment, key: string, first: number, last: number, youngest: number): KeyRow[] {
    segment.index ??= new KeyIndex(segment)
    return segment.index.find(key, first, last, youngest)
  }

  /** A cell for a window's only (or first) row, which has none. `generation`: with which it comes. */
  add(key: string, windowStart: number, born: number, generation: number): void {
    const segment = this.#make(windowStart, generation)
    if (segment.commonStart === windowStart) this.#put(segment.common, key, key, born)
    else this.#put(othersOf(segment, generation), key, key + int64String(windowStart) + firstSequence, born)
  }

  /** As `add`, for a row by its key string. */
  addRow(row: string, born: number, generation: number): void {
    const segment = this.#make(windowStartOf(row), generation)
    const key = row.slice(8, -windowSuffix)
    if (row.endsWith(segment.common.behind)) this.#put(segment.common, key, key, born)
    else this.#put(othersOf(segment, generation), key, row.slice(8), born)
  }

  /** Takes a row out; its segment stays, even if it is empty. */
  remove(place: SegmentTable, cell: number): void {
    const { order, index } = place.segment
    order?.delete(place.rowOf(cell))
    index?.delete(place, cell)
    place.remove(cell)
    this.size--
  }

  /** Takes a segment out with all that is in it. */
  detach(segment: Segment): void {
    if (!segment.isAttached) return
    segment.isAttached = false
    const wasThere = this.#segments.delete(segment.start)
    assert(wasThere, `the segment at ${segment.start} is taken out twice`)
    this.#starts.splice(position(this.#starts, segment.start), 1)
    this.size -= segment.size
    assert(this.size >= 0, `the windows of a store number ${this.size}`)
    this.#forgetLast()
    for (const place of segment.places) giveSpare(place.giveColumns())
  }

  clear(): void {
    for (const segment of [...this.#segments.values()]) this.detach(segment)
  }

  /** Key strings in [from, to), also while rows come and go. The order is kept from the first call on. */
  *rows(from: string | undefined, to: string | undefined, reverse = false): IterableIterator<string> {
    const starts = this.#starts
    const least = from?.slice(0, 8)
    let i = reverse ? starts.length - 1 : 0
    for (;;) {
      const start = starts[i]
      if (start === undefined) return
      const segment = this.#segments.get(start) as Segment
      const { before } = segment
      if (reverse ? least !== undefined && before < least : to !== undefined && before >= to) return
      const inside = reverse ? to === undefined || before < to : least === undefined || before >= least
      if (inside) yield* orderOf(segment).range(from, to, reverse)
      i = position(starts, start)
      // Segments may have come and gone meanwhile.
      if (reverse) i--
      else if (starts[i] === start) i++
    }
  }

  /** `name`: what the place knows the row of this key by. */
  #put(place: SegmentTable, key: string, name: string, born: number): void {
    const cell = place.add(name, born)
    const { order, index } = place.segment
    order?.add(place.rowOf(cell))
    index?.add(key, place, cell)
    this.place = place
    this.cell = cell
    this.size++
  }

  #make(windowStart: number, generation: number): Segment {
    let segment = this.at(windowStart)
    if (segment === undefined) {
      const start = segmentStart(windowStart, this.#intervalMs)
      segment = new Segment(start, windowStart, generation, this.#isPartial(start), takeSpare())
      this.#segments.set(start, segment)
      this.#starts.splice(position(this.#starts, start), 0, start)
      this.#forgetLast()
    }
    if (windowStart < segment.oldest) segment.oldest = windowStart
    if (windowStart > segment.newest) segment.newest = windowStart
    return segment
  }

  #forgetLast(): void {
    this.#lastStart = Number.NaN
    this.#last = undefined
  }
}

function isOver({ oldest, leavesWith, isPartial }: Segment, time: number): boolean {
  return !isPartial && oldest <= time && leavesWith === Number.POSITIVE_INFINITY
}

function othersOf(segment: Segment, generation: number): SegmentTable {
  segment.others ??= new SegmentTable(segment, '', generation, undefined)
  return segment.others
}

function orderOf(segment: Segment): SortedKeys {
  segment.order ??= new SortedKeys(rowsOf(segment))
  return segment.order
}

function* rowsOf({ places }: Segment): Iterable<string> {
  for (const place of places) for (const cell of place.table.taken()) yield place.rowOf(cell)
}
