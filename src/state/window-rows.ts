/**
 * The rows of a window store, committed and not: columns for each segment of time (see `window-table.ts`). Over a memory backend
 * these are all of its rows, over one that is written behind those that it does not have yet, and most that it has: it is
 * asked for the rest. A segment whose windows are over goes as a whole; if all of it came with the epoch that takes it out,
 * nobody ever hears of it.
 */
import { assert } from '../base/assert.ts'
import type { CommitEpoch } from '../base/ids.ts'
import { EngineError } from '../errors.ts'
import { ByteRows } from './byte-rows.ts'
import { int64At, int64String } from './bytes.ts'
import type { Checkpoint, StoreBackend, ValueAndTimestamp } from './contract.ts'
import { segmentStart, windowRow, windowStartOf } from './layout.ts'
import { MemoryBackend } from './memory-backend.ts'
import { type Layers, mergedRows } from './merged-rows.ts'
import { Row, type RowCodec } from './row.ts'
import type { RowLayer } from './row-layer.ts'
import { SlotGeneration } from './slot-generation.ts'
import { UndoLog } from './undo-log.ts'
import { WindowsBelow } from './window-below.ts'
import { WindowCursor } from './window-cursor.ts'
import { type FrontWindows, WindowFront } from './window-front.ts'
import type { KeyRow } from './window-keys.ts'
import { WindowsInMemory } from './window-memory.ts'
import { absent, decoded, deletion } from './slot-record.ts'
import { neverTold, type WindowPlace } from './window-place.ts'
import { changesInBytes, showChanges, type WindowGeneration } from './window-sealed.ts'
import { type Segment, WindowTable } from './window-table.ts'
import { WriteBehind } from './write-behind.ts'

/** Stands for the start of a window where a row is known by its whole key string. */
const noStart = Number.NEGATIVE_INFINITY
/** Logs kept for use again, at most. */
const mostSpareLogs = 8

export class WindowRows implements RowLayer, FrontWindows {
  readonly codec: RowCodec
  readonly table: WindowTable
  /** Bytes of the open epoch's keys and values, about. */
  bytes = 0
  committedGeneration = 0
  readonly #segmentMs: number
  readonly #backend: StoreBackend
  readonly #memory: MemoryBackend | undefined
  readonly #behind: WriteBehind | undefined
  readonly #front: WindowFront | undefined
  /** The rows that are not here. */
  readonly #below: WindowsBelow
  #open: WindowPlace[] = []
  /** Rows that the open epoch changed. */
  #changes = 0
  #generation = 1
  #sealed: WindowGeneration[] = []
  readonly #spare: UndoLog[] = []
  #born = 0
  #writes = 0
  /** What was looked up last: an operator reads a row and then writes it. */
  #lastKey: string | undefined
  #lastStart = noStart
  #place: WindowPlace | undefined
  #slot = -1
  /** Whether a row of it lies below; undefined while nobody has looked. */
  #lastIsBelow: boolean | undefined
  /** The row that is being written or read. */
  readonly #row = new Row(undefined, undefined, 0)
  #readOnly: boolean

  constructor(backend: StoreBackend, codec: RowCodec, readOnly: boolean, segmentMs: number) {
    this.codec = codec
    this.#backend = backend
    this.#readOnly = readOnly
    this.#segmentMs = segmentMs
    this.table = new WindowTable(segmentMs, (segment) => this.#below.mayHave(segment))
    this.#memory = backend instanceof MemoryBackend ? backend : undefined
    this.#behind = backend instanceof WriteBehind ? backend : undefined
    const isPlain = this.#memory === undefined && this.#behind === undefined
    const rows = this.#memory === undefined ? new ByteRows(this.#behind?.backend ?? backend, codec) : undefined
    this.#below = new WindowsBelow(rows, segmentMs, isPlain)
    this.#memory?.attach(new WindowsInMemory(this))
    if (this.#behind === undefined) return
    this.#front = new WindowFront(this)
    this.#behind.attach(this.#front)
  }

  get isChanged(): boolean {
    return this.#changes > 0
  }

  /** Rows that the open epoch changed. */
  get changes(): number {
    return this.#changes
  }

  /**
   * Whether windows are taken out one by one; else by the segment, once all that may be in it is over. What a store has in
   * the end must not depend on how much of it the memory held.
   */
  get takesOne(): boolean {
    return this.#memory !== undefined
  }

  /** Starts of the segments with rows, from `low` on; undefined where not all of them are known here. */
  segmentStarts(low: number): readonly number[] | undefined {
    if (low <= this.#below.last) return undefined
    return this.table.starts.filter((start) => start >= low)
  }

  get(key: string): Row | undefined {
    const slot = this.#find(key)
    if (slot < 0) return this.#belowAt(key)
    return (this.#place as WindowPlace).rowAt(slot, this.codec)
  }

  put(key: string, value: unknown, timestamp: number): void {
    this.#checkWritable()
    this.codec.replace(this.#row, value, timestamp)
    if (this.#find(key) < 0) {
      this.table.addRow(key, ++this.#born, this.#generation)
      this.#added()
    }
    this.#write()
  }

  /** As `get`, for the only (or first) row of a window, with the value as its reader wants it. */
  getWindow(key: string, windowStart: number): ValueAndTimestamp<unknown> | undefined {
    const slot = this.#findWindow(key, windowStart)
    if (slot < 0) {
      // Most windows are new: then nobody has to name them to the backend.
      this.#lastIsBelow = false
      if (!this.#mayLieBelow(windowStart)) return undefined
      const row = this.#belowAt(windowRow(this.#segmentMs, key, windowStart, 0))
      return row && { value: this.codec.value(row), timestamp: row.timestamp }
    }
    const place = this.#place as WindowPlace
    if (place.form(slot) < decoded) return undefined
    return { value: place.read(slot, this.codec, this.#row), timestamp: place.timestamp(slot) }
  }

  putWindow(key: string, windowStart: number, value: unknown, timestamp: number): void {
    this.#checkWritable()
    this.codec.replace(this.#row, value, timestamp)
    if (this.#findWindow(key, windowStart) < 0) {
      this.table.add(key, windowStart, ++this.#born, this.#generation)
      this.#added()
    }
    this.#write()
  }

  delete(key: string): void {
    const slot = this.#find(key)
    if (slot < 0) {
      if (this.#belowAt(key) === undefined) return
      this.#checkWritable()
      this.table.addRow(key, ++this.#born, this.#generation)
      this.#added()
    } else {
      const form = (this.#place as WindowPlace).form(slot)
      if (form === deletion || form === absent) return
      this.#checkWritable()
    }
    this.#delete(this.#place as WindowPlace, this.#slot)
  }

  /**
   * Takes windows that start at `horizon` or before out of the segments that are wholly here, oldest first, about `most` of them. The
   * changelog hears of those it knows; a window that came and went within one epoch is never told.
   */
  expire(horizon: number, most: number): void {
    const { table } = this
    let left = most
    let dropped = false
    for (const segment of table.before(horizon)) {
      const whole = segment.newest <= horizon
      if (whole && this.#isBorn(segment)) {
        this.#dropUntold(segment)
        dropped = true
      } else {
        if (left <= 0) break
        const isAll = whole && segment.size <= left
        if (isAll) segment.forgetOrders()
        left -= this.#expireSegment(segment, horizon, left)
        if (segment.size === 0) {
          table.detach(segment)
          dropped = true
        } else if (isAll) segment.leavesWith = this.#generation
      }
    }
    this.#lastKey = undefined
    if (dropped) this.#open = this.#open.filter(({ segment }) => segment.isAttached)
  }

  /** Whether `expire` would find something. */
  isExpired(horizon: number): boolean {
    return this.table.hasBefore(horizon)
  }

  /** As `isExpired`, for segments of which not all is here. */
  isExpiredBelow(horizon: number): boolean {
    return this.#below.expire(horizon, 1, (from, to) => this.range(from, to)) > 0
  }

  /** As `expire`, for segments of which not all is here. */
  expireBelow(horizon: number, most: number): void {
    this.#below.expire(
      horizon,
      most,
      (from, to) => this.range(from, to),
      (row) => this.delete(row),
    )
  }

  /** The rows of a key in one segment that start in [first, last], in order; undefined where the backend may have more. */
  ofKey(key: string, segment: number, first: number, last: number): KeyRow[] | undefined {
    if (this.#mayLieBelow(segment)) return undefined
    const found = this.table.at(segment)
    return found === undefined ? [] : this.table.ofKey(found, key, first, last, this.#born)
  }

  /** The rows of windows with this start, in the order of their keys, where that can be told without a look at others. */
  windowsAt(windowStart: number): WindowCursor | undefined {
    const segment = this.table.at(windowStart)
    if (segment === undefined) {
      if (this.#mayLieBelow(windowStart)) return undefined
      return new WindowCursor(undefined, this.codec, this.#born)
    }
    if (segment.isPartial || (segment.others !== undefined && segment.others.size > 0)) return undefined
    return new WindowCursor(segment.commonStart === windowStart ? segment.common : undefined, this.codec, this.#born)
  }

  /** Rows in [from, to), without keys that came after the call. A row is given as it is when its turn comes. */
  range(from: string | undefined, to: string | undefined, reverse = false): IterableIterator<[string, Row]> {
    const { rows } = this.#below
    if (rows === undefined || this.#isAllHere(from, to)) return this.#walk(from, to, reverse, this.#born)
    return mergedRows(this.#layers(rows), from, to, reverse)
  }

  /** Committed rows of which no uncommitted change speaks, from `from` on. */
  *settled(from: string | undefined): IterableIterator<[string, Row]> {
    const { table } = this
    for (const entry of this.range(from, undefined)) {
      const isHere = table.seekRow(entry[0])
      if (!isHere || (table.place as WindowPlace).generation(table.slot) <= this.committedGeneration) yield entry
    }
  }

  /** The open epoch's changes; null when there are none. The next epoch is open from now on. */
  seal(epoch: CommitEpoch): SlotGeneration | null {
    const last = this.#sealed[this.#sealed.length - 1]
    assert(last === undefined || last.epoch < epoch, `epoch ${epoch} is sealed after epoch ${last?.epoch}`)
    this.#lastKey = undefined
    this.bytes = 0
    if (this.#changes === 0) {
      // What came and went leaves nothing but its traces.
      for (const place of this.#open) this.#spareLog(place.takeLog(this.#generation))
      this.#open = []
      return null
    }
    const sealed = { epoch, generation: this.#generation++, places: this.#open }
    const count = this.#changes
    this.#sealed.push(sealed)
    this.#open = []
    this.#changes = 0
    return new SlotGeneration(epoch, count, (now, show) => showChanges(this, sealed, now, show))
  }

  /** All sealed epochs are committed: for a store in memory that has no changelog and hence no checkpoint. */
  settleAll(): void {
    if (this.#memory === undefined) return
    for (const sealed of this.#sealed) this.#settle(sealed)
    this.#sealed = []
  }

  applied(epoch: CommitEpoch, dropped: readonly string[], checkpoint: Checkpoint): void {
    let oldest = this.#sealed[0]
    if (oldest !== undefined && oldest.epoch > epoch) oldest = undefined
    assert(oldest === undefined || oldest.epoch === epoch, `epoch ${epoch} is applied before epoch ${oldest?.epoch}`)
    assert(dropped.length === 0, 'what a window store forgets goes through its changelog')
    if (this.#behind === undefined && this.#memory === undefined) {
      this.#backend.apply(oldest === undefined ? [] : changesInBytes(this, oldest), checkpoint)
      this.#writes++
    }
    if (oldest !== undefined) {
      this.#settle(oldest)
      this.#sealed.shift()
    }
    this.#memory?.advance(checkpoint)
    this.#behind?.advance(checkpoint, dropped)
    this.#lastKey = undefined
  }

  discard(): void {
    const generations = [...this.#sealed, { generation: this.#generation, places: this.#open }].reverse()
    for (const { generation, places } of generations) {
      for (const place of places) this.#takeBack(place, place.takeLog(generation))
    }
    this.table.keepAll()
    this.#below.changed(0)
    this.#lastKey = undefined
    this.#open = []
    this.#changes = 0
    this.#sealed = []
    this.bytes = 0
  }

  freeze(): void {
    this.#readOnly = true
  }

  changedBelow(): void {
    this.#lastKey = undefined
    this.#writes++
    this.#below.changed(this.#behind === undefined ? 0 : undefined)
  }

  changedHere(): void {
    this.#lastKey = undefined
  }

  becamePartial(segment: Segment): void {
    segment.isPartial = true
    this.#below.gained(segment.start)
  }

  cleared(): void {
    this.#lastKey = undefined
    this.#below.forget()
    this.#open = []
    this.#changes = 0
    this.#sealed = []
    this.bytes = 0
  }

  #find(key: string): number {
    if (key !== this.#lastKey || this.#lastStart !== noStart) {
      this.table.seekRow(key)
      this.#found(key, noStart)
    }
    return this.#slot
  }

  #findWindow(key: string, windowStart: number): number {
    if (key !== this.#lastKey || windowStart !== this.#lastStart) {
      this.table.seek(key, windowStart)
      this.#found(key, windowStart)
    }
    return this.#slot
  }

  #found(key: string, windowStart: number): void {
    this.#place = this.table.place
    this.#slot = this.table.slot
    this.#lastKey = key
    this.#lastStart = windowStart
    this.#lastIsBelow = undefined
  }

  /** The row that was looked for last has a slot now. */
  #added(): void {
    this.#place = this.table.place
    this.#slot = this.table.slot
    const place = this.#place as WindowPlace
    if (place.segment.isPartial) this.#below.changed()
    this.#front?.added(place, this.#slot, this.#lastIsBelow)
  }

  /** The row that was looked for last, and is not here. */
  #belowAt(row: string): Row | undefined {
    const found = this.#mayLieBelow(int64At(row, 0)) ? this.#below.rows?.get(row) : undefined
    this.#lastIsBelow = found !== undefined
    return found
  }

  /** Whether the backend may have rows of this time's segment that are not here. */
  #mayLieBelow(time: number): boolean {
    const segment = this.table.at(time)
    return segment === undefined ? this.#below.mayHave(segmentStart(time, this.#segmentMs)) : segment.isPartial
  }

  /** Of the rows in [from, to) none lies in the backend alone. */
  #isAllHere(from: string | undefined, to: string | undefined): boolean {
    const { last } = this.#below
    if (from === undefined) return last === Number.NEGATIVE_INFINITY
    const segment = int64At(from, 0)
    if (segment > last) return true
    return to !== undefined && to <= int64String(segment + 1) && !this.#mayLieBelow(segment)
  }

  /** Rows with those below. */
  #layers(below: ByteRows): Layers<Row> {
    const youngest = this.#born
    const { table } = this
    return {
      keys: (from, to, reverse) => table.rows(from, to, reverse),
      at: (key) => (table.seekRow(key) ? this.#rowHere() : undefined),
      isOld: (key) => !table.seekRow(key) || (table.place as WindowPlace).bornAt(table.slot) <= youngest,
      below: (from, to, reverse) => below.range(from, to, reverse),
      writes: () => this.#writes + (this.#behind?.writes ?? 0),
    }
  }

  *#walk(
    from: string | undefined,
    to: string | undefined,
    reverse: boolean,
    youngest: number,
  ): IterableIterator<[string, Row]> {
    const { table } = this
    for (const key of table.rows(from, to, reverse)) {
      // A segment that went meanwhile took it along.
      if (!table.seekRow(key) || (table.place as WindowPlace).bornAt(table.slot) > youngest) continue
      const row = this.#rowHere()
      if (row !== null) yield [key, row]
    }
  }

  /** The row that the table found; null where it is deleted. */
  #rowHere(): Row | null {
    return (this.table.place as WindowPlace).rowAt(this.table.slot, this.codec) ?? null
  }

  #checkWritable(): void {
    if (!this.#readOnly) return
    throw new EngineError('USAGE', 'A view of a store is for reading; write through the store itself.')
  }

  /** The row found or added last holds this from now on. */
  #write(): void {
    const place = this.#place as WindowPlace
    const slot = this.#slot
    if (place.generation(slot) === this.#generation) this.bytes -= place.weight(slot)
    else this.#change(place, slot)
    place.set(slot, this.#row)
    this.bytes += this.codec.weight(this.#row)
  }

  #delete(place: WindowPlace, slot: number): void {
    if (place.generation(slot) === this.#generation) this.bytes -= place.weight(slot)
    else this.#change(place, slot)
    place.delete(slot)
    this.#openLog(place).hasDeletions = true
  }

  /** The row is about to be changed for the first time in the open epoch. */
  #change(place: WindowPlace, slot: number): void {
    place.change(slot, this.#openLog(place))
    this.#changes++
    this.bytes += place.table.keyLength(slot)
  }

  #openLog(place: WindowPlace): UndoLog {
    const { logs } = place
    const last = logs[logs.length - 1]
    if (last !== undefined && last.generation === this.#generation) return last
    const log = this.#spare.pop() ?? new UndoLog()
    log.reset(this.#generation)
    logs.push(log)
    this.#open.push(place)
    // It was to leave with what it had.
    place.segment.leavesWith = Number.POSITIVE_INFINITY
    return log
  }

  #spareLog(log: UndoLog): void {
    log.reset(0)
    if (this.#spare.length < mostSpareLogs) this.#spare.push(log)
  }

  /** All that is in the segment came with the open epoch. */
  #isBorn({ places }: Segment): boolean {
    return places.every(({ firstGeneration }) => firstGeneration === this.#generation)
  }

  /** Takes such a segment out; the open epoch knows nothing of it any more. */
  #dropUntold(segment: Segment): void {
    for (const { logs } of segment.places) {
      for (const log of logs.splice(0)) {
        this.#changes -= log.count
        this.#spareLog(log)
      }
    }
    this.table.detach(segment)
  }

  /** Gives the number of rows that are no longer there, or will not be once the open epoch is committed. */
  #expireSegment(segment: Segment, horizon: number, most: number): number {
    let count = 0
    let oldest = Number.POSITIVE_INFINITY
    for (const place of segment.places) {
      const common = place === segment.common ? segment.commonStart : undefined
      if (common !== undefined && common > horizon) {
        if (place.size > 0) oldest = common
        continue
      }
      const { used } = place.table
      for (let slot = 0; slot < used; slot++) {
        if (place.form(slot) < decoded) continue
        if (count === most) return count
        const start = common ?? windowStartOf(place.table.keyOf(slot))
        if (start > horizon) {
          if (start < oldest) oldest = start
          continue
        }
        if (!this.#forgetBirth(place, slot)) this.#delete(place, slot)
        count++
      }
    }
    segment.oldest = oldest
    return count
  }

  /** A row that came with the open epoch goes, and is never told; false where it is older. */
  #forgetBirth(place: WindowPlace, slot: number): boolean {
    if (place.generation(slot) !== this.#generation) return false
    if (!place.forgetBirth(slot, this.#openLog(place))) return false
    this.table.remove(place, slot)
    this.#changes--
    return true
  }

  /** The generation's rows are the committed ones from now on. */
  #settle({ generation, places }: WindowGeneration): void {
    this.committedGeneration = generation
    for (const place of places) {
      const log = place.takeLog(generation)
      const { segment } = place
      if (segment.isAttached) {
        if (segment.leavesWith <= generation && (this.#front?.isAllNew(segment) ?? true)) this.#drop(segment)
        else if (this.#front !== undefined) this.#front.settle(place, log)
        else if (this.#memory === undefined) this.#release(place, log)
        else if (log.hasDeletions) this.#removeDeleted(place, log)
        if (segment.size === 0) this.table.detach(segment)
      }
      this.#spareLog(log)
    }
  }

  #drop(segment: Segment): void {
    if (this.#front !== undefined) this.#front.drop(segment)
    else this.table.detach(segment)
  }

  #removeDeleted(place: WindowPlace, log: UndoLog): void {
    for (let at = 0; at < log.count; at++) {
      const slot = log.slot(at)
      if (log.form(at) === neverTold) continue
      // A slot that was put again in a newer epoch goes back to a committed deletion: that is to nothing.
      if (place.form(slot) === deletion && place.generation(slot) === log.generation) this.table.remove(place, slot)
    }
  }

  /** The generation's rows lie in the backend from now on. */
  #release(place: WindowPlace, log: UndoLog): void {
    for (let at = 0; at < log.count; at++) {
      if (log.form(at) === neverTold) continue
      const slot = log.slot(at)
      if (place.generation(slot) <= log.generation) this.table.remove(place, slot)
      else place.replaceCommitted(slot, log.generation, absent, undefined)
    }
  }

  #takeBack(place: WindowPlace, log: UndoLog): void {
    for (let at = log.count - 1; at >= 0; at--) {
      if (log.form(at) === neverTold) continue
      const slot = log.slot(at)
      const form = place.takeBack(log, at)
      const isNothing =
        form === deletion && place.generation(slot) <= this.committedGeneration && !this.#front?.holds(place, slot)
      if (form !== absent && !isNothing) continue
      this.#front?.removed(place, slot)
      this.table.remove(place, slot)
    }
    this.#spareLog(log)
    if (place.segment.size === 0) this.table.detach(place.segment)
  }
}
