/**
 * The rows of a window store, committed and not: columns for each segment of time (see `window-table.ts`). Over a memory backend
 * these are all of its rows, over one that is written behind those that it does not have yet, and most that it has: it is
 * asked for the rest. A segment whose windows are over goes as a whole; if all of it came with the epoch that takes it out,
 * nobody ever hears of it.
 */
import { assert } from '../../base/assert.ts'
import type { CommitEpoch } from '../../base/ids.ts'
import { EngineError } from '../../base/errors.ts'
import { ByteRows } from '../rows/byte-rows.ts'
import { int64At, int64String } from '../rows/bytes.ts'
import type { Checkpoint, StoreBackend, ValueAndTimestamp } from '../contract.ts'
import { segmentStart, windowRow } from '../rows/layout.ts'
import { MemoryBackend } from '../backends/memory-backend.ts'
import { bornAnew, isAnother, isYounger, type Layers, mergedRows } from '../rows/merged-rows.ts'
import { Row, type RowCodec } from '../rows/row.ts'
import type { RowChanges } from '../rows/row-changes.ts'
import type { RowLayer } from '../rows/row-layer.ts'
import { SealedEpoch } from '../table/sealed-epoch.ts'
import { PersistedSegments } from './persisted-segments.ts'
import { WindowCursor } from './window-cursor.ts'
import { type BufferedWindows, WindowBuffer } from './window-buffer.ts'
import type { KeyRow } from './window-keys.ts'
import { WindowsInMemory } from './window-memory.ts'
import { absent, decoded, deletion } from '../table/cell-record.ts'
import { windowChanges } from './window-changes.ts'
import { WindowEpochs } from './window-epochs.ts'
import { expireWindows } from './window-expiry.ts'
import type { SegmentTable } from './segment-table.ts'
import { changesInBytes, showChanges } from './window-sealed.ts'
import { type Segment, WindowTable } from './window-table.ts'
import { WriteBehind } from '../backends/write-behind.ts'

/** Stands for the start of a window where a row is known by its whole key string. */
const noStart = Number.NEGATIVE_INFINITY
export class WindowRows implements RowLayer, BufferedWindows {
  readonly codec: RowCodec
  readonly table: WindowTable
  /** Bytes of the open epoch's keys and values, about. */
  bytes = 0
  readonly epochs: WindowEpochs
  readonly #segmentMs: number
  readonly #backend: StoreBackend
  readonly #memory: MemoryBackend | undefined
  readonly #behind: WriteBehind | undefined
  readonly #buffer: WindowBuffer | undefined
  /** The rows that are not here. */
  readonly #below: PersistedSegments
  #born = 0
  /** Moves with every change of what lies below. */
  #writesBelow = 0
  /** Moves with every row that is written or deleted. */
  writes = 0
  /** What was looked up last: an operator reads a row and then writes it. */
  #lastKey: string | undefined
  #lastStart = noStart
  #place: SegmentTable | undefined
  #cell = -1
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
    this.#below = new PersistedSegments(rows, segmentMs, isPlain)
    this.#buffer = this.#behind && new WindowBuffer(this)
    const committedPlace = isPlain ? 'backend' : this.#memory !== undefined ? 'memory' : 'write-behind'
    this.epochs = new WindowEpochs(this.table, committedPlace, this.#buffer)
    this.#memory?.attach(new WindowsInMemory(this))
    if (this.#buffer !== undefined) this.#behind?.attach(this.#buffer)
  }

  get isChanged(): boolean {
    return this.epochs.changes > 0
  }

  get committedGeneration(): number {
    return this.epochs.committedGeneration
  }

  get changedRows(): number {
    return this.epochs.changes
  }

  changes(): RowChanges {
    return windowChanges(this.codec, this.epochs.open, (start, row) =>
      this.#mayLieBelow(start) ? this.#below.rows?.get(row) : undefined,
    )
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
    const cell = this.#find(key)
    if (cell < 0) return this.#belowAt(key)
    return (this.#place as SegmentTable).rowAt(cell, this.codec)
  }

  put(key: string, value: unknown, timestamp: number): void {
    this.#checkWritable()
    this.codec.replace(this.#row, value, timestamp)
    if (this.#find(key) < 0) {
      this.table.addRow(key, ++this.#born, this.epochs.generation)
      this.#added()
    }
    this.#write()
  }

  /** As `get`, for the only (or first) row of a window, with the value as its reader wants it. */
  getWindow(key: string, windowStart: number): ValueAndTimestamp<unknown> | undefined {
    const cell = this.#findWindow(key, windowStart)
    if (cell < 0) {
      // Most windows are new: then nobody has to name them to the backend.
      this.#lastIsBelow = false
      if (!this.#mayLieBelow(windowStart)) return undefined
      const row = this.#belowAt(windowRow(this.#segmentMs, key, windowStart, 0))
      return row && { value: this.codec.value(row), timestamp: row.timestamp }
    }
    const place = this.#place as SegmentTable
    if (place.form(cell) < decoded) return undefined
    return { value: place.read(cell, this.codec, this.#row), timestamp: place.timestamp(cell) }
  }

  putWindow(key: string, windowStart: number, value: unknown, timestamp: number): void {
    this.#checkWritable()
    this.codec.replace(this.#row, value, timestamp)
    if (this.#findWindow(key, windowStart) < 0) {
      this.table.add(key, windowStart, ++this.#born, this.epochs.generation)
      this.#added()
    }
    this.#write()
  }

  delete(key: string): void {
    const cell = this.#find(key)
    if (cell < 0) {
      if (this.#belowAt(key) === undefined) return
      this.#checkWritable()
      this.table.addRow(key, ++this.#born, this.epochs.generation)
      this.#added()
    } else {
      const form = (this.#place as SegmentTable).form(cell)
      if (form === deletion || form === absent) return
      this.#checkWritable()
    }
    this.remove(this.#place as SegmentTable, this.#cell)
  }

  /**
   * Takes windows that start at `horizon` or before out of the segments that are wholly here, oldest first, about `most` of them. The
   * changelog hears of those it knows; a window that came and went within one epoch is never told.
   */
  expire(horizon: number, most: number): void {
    expireWindows(this, horizon, most)
    this.#lastKey = undefined
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
  ofKey(key: string, segment: number, first: number, last: number, youngest: number): KeyRow[] | undefined {
    if (this.#mayLieBelow(segment)) return undefined
    const found = this.table.at(segment)
    return found === undefined ? [] : this.table.ofKey(found, key, first, last, youngest)
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

  /** How many rows have come: a walk over several segments leaves out those that come after it began. */
  get youngest(): number {
    return this.#born
  }

  /** Rows in [from, to), without keys that came after the call. A row is given as it is when its turn comes. */
  range(
    from: string | undefined,
    to: string | undefined,
    reverse = false,
    youngest = this.#born,
  ): IterableIterator<[string, Row]> {
    const { rows } = this.#below
    if (rows === undefined || this.#isAllHere(from, to)) return this.#walk(from, to, reverse, youngest)
    return mergedRows(this.#layers(rows, youngest), from, to, reverse)
  }

  /** A row that a walk has found, as it is now; undefined where it has gone, or another one has come in its place. */
  again(key: string, youngest: number): Row | undefined {
    const { table } = this
    if (!table.seekRow(key)) return this.#below.rows?.get(key)
    return isAnother((table.place as SegmentTable).bornAt(table.cell), youngest)
      ? undefined
      : (this.#rowHere() ?? undefined)
  }

  /** Committed rows of which no uncommitted change speaks, from `from` on. */
  *settled(from: string | undefined): IterableIterator<[string, Row]> {
    const { table } = this
    for (const entry of this.range(from, undefined)) {
      const isHere = table.seekRow(entry[0])
      if (!isHere || (table.place as SegmentTable).generation(table.cell) <= this.committedGeneration) yield entry
    }
  }

  /** The open epoch's changes; null when there are none. The next epoch is open from now on. */
  seal(epoch: CommitEpoch): SealedEpoch | null {
    const sealed = this.epochs.seal(epoch)
    this.#lastKey = undefined
    this.bytes = 0
    if (sealed === null) return null
    return new SealedEpoch(epoch, sealed.count, (now, show) => showChanges(this, sealed, now, show))
  }

  /** All sealed epochs are committed: for a store in memory that has no changelog and hence no checkpoint. */
  settleAll(): void {
    if (this.#memory !== undefined) this.epochs.settleAll()
  }

  applied(epoch: CommitEpoch, dropped: readonly string[], checkpoint: Checkpoint): void {
    const sealed = this.epochs.sealedAs(epoch)
    assert(dropped.length === 0, 'what a window store forgets goes through its changelog')
    if (this.#behind === undefined && this.#memory === undefined) {
      this.#backend.apply(sealed === undefined ? [] : changesInBytes(this, sealed), checkpoint)
      this.#writesBelow++
    }
    if (sealed !== undefined) this.epochs.settleOldest()
    this.#memory?.advance(checkpoint)
    this.#behind?.advance(checkpoint, dropped)
    this.#lastKey = undefined
  }

  discard(): void {
    this.epochs.discard()
    this.#below.changed(0)
    this.#lastKey = undefined
    this.bytes = 0
  }

  freeze(): void {
    this.#readOnly = true
  }

  changedBelow(): void {
    this.#lastKey = undefined
    this.#writesBelow++
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
    this.epochs.clear()
    this.bytes = 0
  }

  /** Deletes a row in the open epoch. */
  remove(place: SegmentTable, cell: number): void {
    this.#change(place, cell)
    place.delete(cell)
    this.epochs.logOf(place).hasDeletions = true
  }

  #find(key: string): number {
    if (key !== this.#lastKey || this.#lastStart !== noStart) {
      this.table.seekRow(key)
      this.#found(key, noStart)
    }
    return this.#cell
  }

  #findWindow(key: string, windowStart: number): number {
    if (key !== this.#lastKey || windowStart !== this.#lastStart) {
      this.table.seek(key, windowStart)
      this.#found(key, windowStart)
    }
    return this.#cell
  }

  #found(key: string, windowStart: number): void {
    this.#place = this.table.place
    this.#cell = this.table.cell
    this.#lastKey = key
    this.#lastStart = windowStart
    this.#lastIsBelow = undefined
  }

  /** The row that was looked for last has a cell now. */
  #added(): void {
    this.#place = this.table.place
    this.#cell = this.table.cell
    const place = this.#place as SegmentTable
    if (place.segment.isPartial) this.#below.changed()
    this.#buffer?.added(place, this.#cell, this.#lastIsBelow)
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
  #layers(below: ByteRows, youngest: number): Layers<Row> {
    const { table } = this
    return {
      keys: (from, to, reverse) => table.rows(from, to, reverse),
      at: (key) => {
        if (!table.seekRow(key)) return undefined
        return isAnother((table.place as SegmentTable).bornAt(table.cell), youngest) ? null : this.#rowHere()
      },
      isOld: (key) => !table.seekRow(key) || !isYounger((table.place as SegmentTable).bornAt(table.cell), youngest),
      below: (from, to, reverse) => below.range(from, to, reverse),
      writes: () => this.#writesBelow + (this.#behind?.writes ?? 0),
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
      if (!table.seekRow(key) || isYounger((table.place as SegmentTable).bornAt(table.cell), youngest)) continue
      const row = this.#rowHere()
      if (row !== null) yield [key, row]
    }
  }

  /** The row that the table found; null where it is deleted. */
  #rowHere(): Row | null {
    return (this.table.place as SegmentTable).rowAt(this.table.cell, this.codec) ?? null
  }

  #checkWritable(): void {
    if (!this.#readOnly) return
    throw new EngineError('USAGE', 'A view of a store is for reading; write through the store itself.')
  }

  /** The row found or added last holds this from now on. */
  #write(): void {
    const place = this.#place as SegmentTable
    if (place.form(this.#cell) === deletion) place.setBorn(this.#cell, bornAnew(++this.#born))
    this.#change(place, this.#cell)
    place.set(this.#cell, this.#row)
    this.bytes += this.codec.weight(this.#row)
  }

  /** The row is about to be changed in the open epoch. */
  #change(place: SegmentTable, cell: number): void {
    this.writes++
    if (place.generation(cell) === this.epochs.generation) {
      this.bytes -= place.weight(cell)
      return
    }
    this.epochs.change(place, cell)
    this.bytes += place.table.keyLength(cell)
  }
}
