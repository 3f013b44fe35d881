/**
 * What was fetched of a partition that several tasks write, put in the order of event time: records of one time in that of
 * their offsets. Dispatch takes the oldest one, when it is its turn; so some records are done while older offsets are not.
 *
 * A commit therefore holds the oldest offset that is not done, and beside it what is done of those behind: everything
 * below `end` up to a place in the order (`Kept`). That is exact, for a record that comes behind its place, older than one
 * that went already, is not taken in among the others: it goes at once, from where it lies.
 */
import type { LyingRecord } from '../../../lanes/transfer.ts'
import type { Sizes } from '../../../base/sizes.ts'
import { noHead } from '../../../time/head-order.ts'
import { OffsetQueue } from './offset-queue.ts'
import type { PartitionBuffer } from '../partition-buffer.ts'

/** Of the offsets from the committed one up to `end` the records up to this place are done, and no others. */
export interface Kept {
  readonly end: number
  readonly timestamp: number
  readonly offset: number
}

/** What waits for its turn of all partitions may take so much of what is buffered at most. */
export function sortedRoom(bufferedMaxBytes: number, { sortedBytes, sortedMostBytes }: Sizes): number {
  return Math.max(sortedBytes, Math.min(sortedMostBytes, bufferedMaxBytes / 2))
}

/** Memory for what waits, of several partitions. */
export interface SortedRoom {
  /** So much each of them may have in any case. */
  share: number
  /** Beyond its share each may have more while all together have less than this. */
  most: number
  used: number
}

/** What went of a task before its turn was known to have come. */
export interface LetGo {
  /** Event time of the youngest head that did. */
  upToMs: number
}

const nothing = new Uint8Array(0)
const slabBytes = 64 * 1024
/** What a record takes beside its bytes. */
const recordBytes = 64
const firstCapacity = 64

interface Slab {
  readonly bytes: Uint8Array
  readonly view: DataView
  used: number
  records: number
}

/** The record that goes next. */
class Held implements LyingRecord {
  offset = -1
  bytes: Uint8Array = nothing
  view: DataView = new DataView(nothing.buffer)
  keyStart = -1
  keyEnd = -1
  valueStart = -1
  valueEnd = -1
  headersStart = 0
  headersEnd = 0
}

export class SortedBuffer {
  readonly inner: PartitionBuffer
  /** Records that came behind one that went before and is younger. */
  behind = 0
  /** Records that came when a younger one of their task had been let go. */
  overtaken = 0
  readonly #letGo: LetGo
  readonly #held = new Held()
  /** What was done before this process took the partition over, until all of that is read again: nothing goes before. */
  #before: Kept | undefined
  /** Offset of the head that dispatch was told of; -1: none. */
  shownOffset = -1
  /** No more is taken in than fits; what is to be read again has fitted before. */
  readonly #room: SortedRoom
  /** Place of the youngest record that went. */
  #wentTimestamp = Number.NEGATIVE_INFINITY
  #wentOffset = -1
  /** Slots of the records, as a binary heap by their place. */
  #heap = new Int32Array(firstCapacity)
  #size = 0
  #free: number[] = []
  #timestamps = new Float64Array(firstCapacity)
  #offsets = new Float64Array(firstCapacity)
  #slabs: Array<Slab | undefined> = []
  #starts = new Int32Array(firstCapacity)
  /** -1: null. */
  #keys = new Int32Array(firstCapacity)
  #values = new Int32Array(firstCapacity)
  #headers = new Int32Array(firstCapacity)
  #slab: Slab | undefined
  readonly #order = new OffsetQueue()

  constructor(
    inner: PartitionBuffer,
    before: Kept | undefined,
    room: SortedRoom,
    letGo: LetGo = { upToMs: Number.NEGATIVE_INFINITY },
  ) {
    this.inner = inner
    this.#letGo = letGo
    this.#room = room
    this.#before = before
    if (!before) return
    this.#wentTimestamp = before.timestamp
    this.#wentOffset = before.offset
  }

  /** Records taken in. */
  get size(): number {
    return this.#size
  }

  /** Bytes that they keep. */
  get bytes(): number {
    return this.inner.held
  }

  get hasHead(): boolean {
    return this.headTimestamp !== noHead
  }

  /** Event time of the record that goes next; `noHead`: there is none. */
  get headTimestamp(): number {
    if (this.#before !== undefined) return noHead
    if (this.#isLateNext) return this.inner.headTimestamp
    return this.#size === 0 ? noHead : (this.#timestamps[this.#heap[0] as number] as number)
  }

  get headOffset(): number {
    if (this.#before !== undefined) return -1
    if (this.#isLateNext) return this.inner.headOffset
    return this.#size === 0 ? -1 : (this.#offsets[this.#heap[0] as number] as number)
  }

  /** The record that goes next; to be read before anything else is done with the buffer. */
  get cursor(): LyingRecord {
    if (this.#isLateNext) return this.inner.cursor
    const slot = this.#heap[0] as number
    const slab = this.#slabs[slot] as Slab
    const held = this.#held
    held.offset = this.#offsets[slot] as number
    held.bytes = slab.bytes
    held.view = slab.view
    let at = this.#starts[slot] as number
    const key = this.#keys[slot] as number
    held.keyStart = key < 0 ? -1 : at
    at += Math.max(0, key)
    held.keyEnd = key < 0 ? -1 : at
    const value = this.#values[slot] as number
    held.valueStart = value < 0 ? -1 : at
    at += Math.max(0, value)
    held.valueEnd = value < 0 ? -1 : at
    held.headersStart = at
    held.headersEnd = at + (this.#headers[slot] as number)
    return held
  }

  /** Everything below this offset was taken in or done; of what lies there, `nextOffset` is the oldest that is not done. */
  get taken(): number {
    return this.inner.nextOffset
  }

  /** The oldest offset that is not done. */
  get nextOffset(): number {
    return this.#order.oldest ?? this.inner.nextOffset
  }

  /** Event time of the youngest record that went, here or before this process had the partition. */
  get wentUpTo(): number {
    return this.#wentTimestamp
  }

  /** What is done of the offsets from `nextOffset` on; undefined: nothing. */
  get kept(): Kept | undefined {
    if (this.#before !== undefined) return this.#before
    if (this.#size === 0) return undefined
    return { end: this.taken, timestamp: this.#wentTimestamp, offset: this.#wentOffset }
  }

  /** More was fetched than may be taken in: what would come next is not known. */
  get isFull(): boolean {
    return this.inner.hasHead && !this.#isLateNext && this.#hasNoRoom
  }

  /** There was no room for what comes next, and now there is. */
  get mayTakeMore(): boolean {
    return this.inner.hasHead && !this.#isLateNext && !this.#hasNoRoom
  }

  get #hasNoRoom(): boolean {
    const { share, most, used } = this.#room
    return this.inner.held >= share && used >= most
  }

  /** The partition is read here no longer. */
  leave(): void {
    this.#room.used -= this.inner.held
  }

  /** What was at hand at the last commit is not all read again. */
  get isReadingAgain(): boolean {
    return this.#before !== undefined
  }

  /** Takes in what was fetched. */
  fill(): void {
    const { inner } = this
    for (;;) {
      // The first record behind those that were at hand then may be one that is late.
      const { headOffset } = inner
      const reached = Math.max(this.taken, headOffset)
      if (this.#before !== undefined && reached >= this.#before.end) this.#before = undefined
      if (headOffset < 0 || this.#isLateNext) return
      if (this.#before === undefined && this.#hasNoRoom) return
      if (!this.#wasDone()) this.#add()
      inner.shift()
    }
  }

  /** Takes out the record that goes next. */
  shift(): void {
    if (this.#isLateNext) {
      this.behind++
      this.#came()
      this.inner.shift()
      if (this.inner.hasHead) this.fill()
      return
    }
    const slot = this.#heap[0] as number
    this.#wentTimestamp = this.#timestamps[slot] as number
    this.#wentOffset = this.#offsets[slot] as number
    this.#order.done(this.#wentOffset)
    this.#release(slot)
    const last = this.#heap[--this.#size] as number
    if (this.#size > 0) this.#sink(last)
    if (this.inner.hasHead) this.fill()
  }

  /** The fetched record is older than one that went: it has no place among the others. */
  get #isLateNext(): boolean {
    const { inner } = this
    return inner.hasHead && this.#before === undefined && !this.#isAfterLast(inner.headTimestamp, inner.headOffset)
  }

  #wasDone(): boolean {
    const before = this.#before
    const { inner } = this
    if (before === undefined || inner.headOffset >= before.end) return false
    const { headTimestamp: at } = inner
    return at < before.timestamp || (at === before.timestamp && inner.headOffset <= before.offset)
  }

  #isAfterLast(timestamp: number, offset: number): boolean {
    return timestamp > this.#wentTimestamp || (timestamp === this.#wentTimestamp && offset > this.#wentOffset)
  }

  // ── bytes ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #add(): void {
    this.#came()
    const { inner } = this
    const { cursor } = inner
    const key = cursor.keyStart < 0 ? -1 : cursor.keyEnd - cursor.keyStart
    const value = cursor.valueStart < 0 ? -1 : cursor.valueEnd - cursor.valueStart
    const headers = cursor.headersEnd - cursor.headersStart
    const bytes = Math.max(0, key) + Math.max(0, value) + headers
    const slab = this.#slabFor(bytes)
    const slot = this.#slot()
    this.#timestamps[slot] = inner.headTimestamp
    this.#offsets[slot] = cursor.offset
    this.#slabs[slot] = slab
    this.#starts[slot] = slab.used
    this.#keys[slot] = key
    this.#values[slot] = value
    this.#headers[slot] = headers
    slab.records++
    inner.hold(bytes + recordBytes)
    this.#room.used += bytes + recordBytes
    // Key, value and headers do not lie side by side where lengths stand between them.
    if (key > 0) copy(slab, cursor.bytes, cursor.keyStart, cursor.keyEnd)
    if (value > 0) copy(slab, cursor.bytes, cursor.valueStart, cursor.valueEnd)
    if (headers > 0) copy(slab, cursor.bytes, cursor.headersStart, cursor.headersEnd)
    this.#order.push(cursor.offset)
    this.#rise(slot, this.#size++)
  }

  #came(): void {
    if (this.inner.headTimestamp < this.#letGo.upToMs) this.overtaken++
  }

  #slabFor(bytes: number): Slab {
    const current = this.#slab
    if (current && current.used + bytes <= current.bytes.length) return current
    const own = new Uint8Array(Math.max(slabBytes, bytes))
    const slab = { bytes: own, view: new DataView(own.buffer), used: 0, records: 0 }
    this.#slab = slab
    return slab
  }

  #release(slot: number): void {
    const slab = this.#slabs[slot] as Slab
    this.#slabs[slot] = undefined
    this.#free.push(slot)
    const bytes = Math.max(0, this.#keys[slot] as number) + Math.max(0, this.#values[slot] as number)
    const kept = bytes + (this.#headers[slot] as number) + recordBytes
    this.inner.letGo(kept)
    this.#room.used -= kept
    if (--slab.records === 0 && slab === this.#slab) slab.used = 0
  }

  #slot(): number {
    const free = this.#free.pop()
    if (free !== undefined) return free
    const slot = this.#size
    if (slot === this.#timestamps.length) this.#grow()
    return slot
  }

  #grow(): void {
    const capacity = 2 * this.#timestamps.length
    const doubled = <T extends Float64Array | Int32Array>(from: T, to: T): T => {
      to.set(from)
      return to
    }
    this.#timestamps = doubled(this.#timestamps, new Float64Array(capacity))
    this.#offsets = doubled(this.#offsets, new Float64Array(capacity))
    this.#heap = doubled(this.#heap, new Int32Array(capacity))
    this.#starts = doubled(this.#starts, new Int32Array(capacity))
    this.#keys = doubled(this.#keys, new Int32Array(capacity))
    this.#values = doubled(this.#values, new Int32Array(capacity))
    this.#headers = doubled(this.#headers, new Int32Array(capacity))
  }

  // ── order ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #isBefore(a: number, b: number): boolean {
    const [mine, theirs] = [this.#timestamps[a] as number, this.#timestamps[b] as number]
    return mine < theirs || (mine === theirs && (this.#offsets[a] as number) < (this.#offsets[b] as number))
  }

  #rise(slot: number, from: number): void {
    const heap = this.#heap
    let at = from
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = heap[parent] as number
      if (!this.#isBefore(slot, above)) break
      heap[at] = above
      at = parent
    }
    heap[at] = slot
  }

  #sink(slot: number): void {
    const heap = this.#heap
    let at = 0
    for (let child = 1; child < this.#size; child = 2 * at + 1) {
      const right = child + 1
      if (right < this.#size && this.#isBefore(heap[right] as number, heap[child] as number)) child = right
      const below = heap[child] as number
      if (!this.#isBefore(below, slot)) break
      heap[at] = below
      at = child
    }
    heap[at] = slot
  }
}

function copy(to: Slab, bytes: Uint8Array, start: number, end: number): void {
  to.bytes.set(bytes.subarray(start, end), to.used)
  to.used += end - start
}
