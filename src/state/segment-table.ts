/**
 * Nodes of a window store, cut into segments of time. Most segments hold windows of one start alone; those are found by
 * the key as it is: no longer name is put together, hashed and compared for each record, and what is over goes by the
 * segment.
 */
import { int64At, int64String, keyBytes } from './bytes.ts'
import { segmentStart, sequenceString, windowStartOf, windowSuffix } from './layout.ts'
import { Node, type NodePlace } from './node.ts'
import type { NodeTable } from './node-table.ts'
import type { Row } from './row.ts'
import { position, SortedKeys } from './sorted-keys.ts'

class Place implements NodePlace {
  readonly before: string
  readonly behind: string
  readonly tail: Uint8Array
  readonly segment: Segment
  readonly nodes = new Map<string, Node>()

  constructor(segment: Segment, behind: string) {
    this.segment = segment
    this.before = segment.before
    this.behind = behind
    this.tail = keyBytes(behind)
  }
}

const firstSequence = sequenceString(0)

export class Segment {
  readonly start: number
  readonly before: string
  /** The windows of this start are named by their key alone; those of other starts by key, start and sequence number. */
  readonly commonStart: number
  readonly common: Place
  readonly others: Place
  /** Latest start of a window in here; and a time before which none starts. */
  newest: number
  oldest: number
  /** The rows' key strings in order, from the first ordered reading on. */
  order: SortedKeys | undefined
  /** Generation whose commit takes the segment out, with all that is in it; Infinity: it stays. */
  leavesWith = Number.POSITIVE_INFINITY
  isAttached = true

  constructor(start: number, firstWindow: number) {
    this.start = start
    this.before = int64String(start)
    this.commonStart = firstWindow
    this.newest = firstWindow
    this.oldest = firstWindow
    this.common = new Place(this, int64String(firstWindow) + firstSequence)
    this.others = new Place(this, '')
  }

  get size(): number {
    return this.common.nodes.size + this.others.nodes.size
  }

  get places(): readonly Place[] {
    return [this.common, this.others]
  }
}

export class SegmentTable implements NodeTable {
  readonly #intervalMs: number
  readonly #segments = new Map<number, Segment>()
  /** Starts of the segments, ascending. */
  readonly #starts: number[] = []
  /** Most records in a row belong to windows of one start. */
  #lastStart = Number.NaN
  #last: Segment | undefined
  #size = 0

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  get size(): number {
    return this.#size
  }

  /** Starts of the segments that are there, ascending. */
  get starts(): readonly number[] {
    return this.#starts
  }

  /** Segments that stay, though windows in them may start at `time` or before; oldest first. */
  *before(time: number): IterableIterator<Segment> {
    for (const start of [...this.#starts]) {
      if (start > time) return
      const segment = this.#segments.get(start) as Segment
      if (segment.oldest <= time && segment.leavesWith === Number.POSITIVE_INFINITY) yield segment
    }
  }

  /** Whether there is such a segment. */
  hasBefore(time: number): boolean {
    for (const start of this.#starts) {
      if (start > time) return false
      const segment = this.#segments.get(start) as Segment
      if (segment.oldest <= time && segment.leavesWith === Number.POSITIVE_INFINITY) return true
    }
    return false
  }

  /** The generation is committed: takes out the segments that go with it. */
  leave(generation: number): void {
    let oldest = this.#segments.get(this.#starts[0] as number)
    while (oldest !== undefined && oldest.leavesWith <= generation) {
      this.detach(oldest)
      oldest = this.#segments.get(this.#starts[0] as number)
    }
  }

  /** No segment leaves: what was to take them out is not going to be committed. */
  keepAll(): void {
    for (const segment of this.#segments.values()) {
      segment.leavesWith = Number.POSITIVE_INFINITY
      segment.oldest = segment.start
    }
  }

  /** The node of a window's only (or first) row. */
  find(key: string, windowStart: number): Node | undefined {
    const segment = this.#at(windowStart)
    if (segment === undefined) return undefined
    if (segment.commonStart === windowStart) return segment.common.nodes.get(key)
    const { others } = segment
    return others.nodes.size === 0 ? undefined : others.nodes.get(key + int64String(windowStart) + firstSequence)
  }

  addAt(key: string, windowStart: number, top: Row, born: number): Node {
    const segment = this.#make(windowStart)
    if (segment.commonStart === windowStart) return this.#put(segment.common, new Node(key, top, born))
    return this.#put(segment.others, new Node(key + int64String(windowStart) + firstSequence, top, born))
  }

  /** All rows of windows with this start, where that can be told without a look at others; else undefined. */
  startingAt(windowStart: number): Iterable<Node> | undefined {
    const segment = this.#at(windowStart)
    if (segment === undefined) return []
    if (segment.others.nodes.size > 0) return undefined
    return segment.commonStart === windowStart ? segment.common.nodes.values() : []
  }

  get(row: string): Node | undefined {
    return this.#segments.has(int64At(row, 0)) ? this.#named(row) : undefined
  }

  add(row: string, top: Row, born: number): Node {
    const segment = this.#make(windowStartOf(row))
    if (isCommon(segment, row)) return this.#put(segment.common, new Node(row.slice(8, -windowSuffix), top, born))
    return this.#put(segment.others, new Node(row.slice(8), top, born))
  }

  remove(node: Node): void {
    const { segment } = node.place as Place
    this.drop(node)
    if (segment.isAttached && segment.size === 0) this.detach(segment)
  }

  /** As `remove`, but the segment stays, even if it is empty. */
  drop(node: Node): void {
    const { segment, nodes } = node.place as Place
    if (!segment.isAttached || !nodes.delete(node.key)) return
    this.#size--
    segment.order?.delete(this.rowOf(node))
  }

  rowOf(node: Node): string {
    const { before, behind } = node.place as Place
    return before + node.key + behind
  }

  clear(): void {
    for (const segment of this.#segments.values()) segment.isAttached = false
    this.#segments.clear()
    this.#starts.length = 0
    this.#size = 0
    this.#forgetLast()
  }

  *all(): Iterable<Node> {
    for (const { places } of this.#segments.values()) for (const { nodes } of places) yield* nodes.values()
  }

  /** Takes a segment out with all that is in it. */
  detach(segment: Segment): void {
    segment.isAttached = false
    this.#segments.delete(segment.start)
    this.#starts.splice(position(this.#starts, segment.start), 1)
    this.#size -= segment.size
    this.#forgetLast()
  }

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
      if (inside) yield* this.#order(segment).range(from, to, reverse)
      i = position(starts, start)
      // Segments may have come and gone meanwhile.
      if (reverse) i--
      else if (starts[i] === start) i++
    }
  }

  #order(segment: Segment): SortedKeys {
    segment.order ??= new SortedKeys(rowsOf(segment))
    return segment.order
  }

  #named(row: string): Node | undefined {
    const segment = this.#segments.get(int64At(row, 0)) as Segment
    if (isCommon(segment, row)) return segment.common.nodes.get(row.slice(8, -windowSuffix))
    return segment.others.nodes.get(row.slice(8))
  }

  #put(place: Place, node: Node): Node {
    node.place = place
    place.nodes.set(node.key, node)
    place.segment.order?.add(this.rowOf(node))
    this.#size++
    return node
  }

  #at(windowStart: number): Segment | undefined {
    if (windowStart !== this.#lastStart) {
      this.#last = this.#segments.get(segmentStart(windowStart, this.#intervalMs))
      this.#lastStart = windowStart
    }
    return this.#last
  }

  #make(windowStart: number): Segment {
    let segment = this.#at(windowStart)
    if (segment === undefined) {
      const start = segmentStart(windowStart, this.#intervalMs)
      segment = new Segment(start, windowStart)
      this.#segments.set(start, segment)
      this.#starts.splice(position(this.#starts, start), 0, start)
      this.#forgetLast()
    }
    if (windowStart < segment.oldest) segment.oldest = windowStart
    if (windowStart > segment.newest) {
      segment.newest = windowStart
      // It was to leave with the windows that it had.
      segment.leavesWith = Number.POSITIVE_INFINITY
    }
    return segment
  }

  #forgetLast(): void {
    this.#lastStart = Number.NaN
    this.#last = undefined
  }
}

function isCommon({ common: { behind } }: Segment, row: string): boolean {
  return row.endsWith(behind)
}

function* rowsOf({ places }: Segment): Iterable<string> {
  for (const { before, behind, nodes } of places) for (const key of nodes.keys()) yield before + key + behind
}
