/**
 * Committed rows of windows in front of a backend that is written behind. They stay here until their windows are over, as far
 * as there is room: what came and went between two writes was never on the disk, and has nothing to be deleted there.
 */
import type { WriteBuffer, HeldBatch } from '../backends/write-buffer.ts'
import { sortByKey } from '../backends/key-order.ts'
import { Row, type RowCodec } from '../rows/row.ts'
import { absent, decoded, deletion } from '../table/cell-record.ts'
import type { UndoLog } from '../table/undo-log.ts'
import { sortedCells } from './window-order.ts'
import { isOnDisk, isHeld, isUnknown, isWriting, unpublished, type SegmentTable } from './segment-table.ts'
import type { Segment, WindowTable } from './window-table.ts'

/** What a row takes beside its key and value: numbers, the index, its place among the values. */
const overheadBytes = 112

/** The rows themselves: see `window-rows.ts`. */
export interface BufferedWindows {
  readonly table: WindowTable
  readonly codec: RowCodec
  /** Rows of this generation and of older ones are committed. */
  readonly committedGeneration: number
  /** The backend has rows of this segment that are not here. */
  becamePartial(segment: Segment): void
  /** Rows have come, gone or changed. */
  changedHere(): void
  /** The table was emptied. */
  cleared(): void
}

interface Spot {
  readonly place: SegmentTable
  readonly cell: number
}

export class WindowBuffer implements WriteBuffer {
  difference = 0
  readonly #rows: BufferedWindows
  readonly #table: WindowTable
  readonly #codec: RowCodec
  readonly #row = new Row(undefined, undefined, 0)
  /** Rows that the backend does not have. */
  #held = 0
  /** Bytes of a row's key and value, smoothed. */
  #rowBytes = 0

  constructor(rows: BufferedWindows) {
    this.#rows = rows
    this.#table = rows.table
    this.#codec = rows.codec
  }

  get heldBytes(): number {
    return Math.round(this.#held * (overheadBytes + this.#rowBytes))
  }

  get bufferBytes(): number {
    return Math.round(this.#table.size * (overheadBytes + this.#rowBytes))
  }

  /** A cell was given to a key; `below`: whether the backend has a row, where that is known. */
  added(place: SegmentTable, cell: number, below: boolean | undefined): void {
    let flags = 0
    if (place.segment.isPartial && below !== false) flags = below === undefined ? isOnDisk | isUnknown : isOnDisk
    place.setFlags(cell, flags)
    if (flags !== 0) place.below++
  }

  /** Whether the cell's committed row, or that it was deleted, is still to be written. */
  holds(place: SegmentTable, cell: number): boolean {
    return (place.flags(cell) & isHeld) !== 0
  }

  /** The cell is given back: what it had was never committed. */
  removed(place: SegmentTable, cell: number): void {
    if (place.flags(cell) & isOnDisk) place.below--
    place.setFlags(cell, 0)
  }

  /** An epoch is committed: these are its rows of one place. */
  settle(place: SegmentTable, log: UndoLog): void {
    for (let at = 0; at < log.count; at++) {
      const form = log.form(at)
      if (form !== unpublished) this.#took(place, log.cell(at), form >= decoded)
    }
  }

  /** Whether the segment can go as a whole: the backend has none of its rows, and is not about to get one. */
  isAllNew({ places }: Segment): boolean {
    return places.every(({ below, writing }) => below === 0 && writing === 0)
  }

  /** Takes such a segment out. */
  drop(segment: Segment): void {
    for (const { held, difference } of segment.places) {
      this.#held -= held
      this.difference -= difference
    }
    this.#table.detach(segment)
  }

  committed(key: string): Uint8Array | null | undefined {
    if (!this.#table.seekRow(key)) return undefined
    const form = this.#load(this.#table.place as SegmentTable, this.#table.cell)
    if (form === absent) return undefined
    return form === deletion ? null : this.#codec.toBackend(this.#row)
  }

  keys(from: string | undefined, to: string | undefined, reverse: boolean): IterableIterator<string> {
    return this.#table.rows(from, to, reverse)
  }

  hold(key: string, value: Uint8Array | null): void {
    const row = value === null ? undefined : this.#codec.fromBackend(value)
    const table = this.#table
    if (!table.seekRow(key)) {
      // Of a segment that is all here the backend has no other rows.
      if (row === undefined && table.place?.segment.isPartial === false) return
      table.addRow(key, 0, 0)
      this.added(table.place as SegmentTable, table.cell, undefined)
    }
    const place = table.place as SegmentTable
    const { cell } = table
    const committed = this.#rows.committedGeneration
    const wasThere = this.#load(place, cell) >= decoded
    place.firstGeneration = 0
    if (place.generation(cell) > committed) place.replaceCommitted(cell, committed, deletion, row)
    else place.commit(cell, row)
    this.#took(place, cell, wasThere)
    if (place.segment.size === 0) table.detach(place.segment)
    this.#rows.changedHere()
  }

  *held(): IterableIterator<readonly [string, Uint8Array | null]> {
    for (const segment of this.#table.segments) {
      for (const place of segment.places) {
        for (const cell of heldCells(place)) yield [place.rowOf(cell), this.#bytes(place, cell)]
      }
    }
  }

  take(): HeldBatch {
    const spots: Spot[] = []
    for (const start of this.#table.starts) {
      const { places } = this.#table.at(start) as Segment
      const held = places.filter((place) => place.held > 0)
      const own: Spot[] = []
      for (const place of held) {
        for (const cell of sortedCells(place.table, heldCells(place))) own.push({ place, cell })
      }
      if (held.length > 1) {
        sortByKey(
          own.map(({ place, cell }) => place.rowOf(cell)),
          own,
        )
      }
      for (const spot of own) spots.push(spot)
    }
    for (const { place, cell } of spots) {
      place.setFlags(cell, place.flags(cell) | isWriting)
      place.writing++
    }
    const at = (i: number): Spot => spots[i] as Spot
    return {
      count: spots.length,
      key: (i) => at(i).place.rowOf(at(i).cell),
      value: (i) => this.#transient(at(i)),
      release: (from, to, keep) => {
        for (let i = from; i < to; i++) this.#release(at(i), keep)
        this.#rows.changedHere()
      },
    }
  }

  compare(has: (key: string) => boolean): void {
    for (const segment of this.#table.segments) {
      for (const place of segment.places) {
        if (place.below === 0) continue
        for (const cell of heldCells(place)) {
          const flags = place.flags(cell)
          if ((flags & isUnknown) === 0) continue
          const found = has(place.rowOf(cell))
          place.setFlags(cell, flags & ~(found ? isUnknown : isUnknown | isOnDisk))
          if (found) continue
          place.below--
          this.#differ(place, 1)
        }
      }
    }
  }

  shrink(): void {
    for (const segment of [...this.#table.segments]) {
      for (const place of segment.places) {
        if (place.below === 0) continue
        for (const cell of [...place.table.taken()]) {
          const flags = place.flags(cell)
          if ((flags & isHeld) === 0 && (flags & isOnDisk) !== 0) this.#forget(place, cell)
        }
      }
      if (segment.size === 0) this.#table.detach(segment)
    }
    this.#rows.changedHere()
  }

  clear(): void {
    this.#table.clear()
    this.#held = 0
    this.difference = 0
    this.#rows.cleared()
  }

  /** The cell's committed row is another one now; the backend does not have it. */
  #took(place: SegmentTable, cell: number, before: boolean): void {
    const after = this.#load(place, cell) >= decoded
    const flags = place.flags(cell)
    if (flags & isHeld) {
      this.#differ(place, Number(after) - Number(before))
    } else {
      place.setFlags(cell, flags | isHeld)
      place.held++
      this.#differ(place, Number(after) - Number((flags & isOnDisk) !== 0))
      if (after && (this.#held & 7) === 0) {
        const bytes = place.table.keyLength(cell) + 2 * this.#codec.weight(this.#row)
        this.#rowBytes += (bytes - this.#rowBytes) / Math.min(this.#held + 1, 16)
      }
      this.#held++
    }
    if (!after && (flags & (isOnDisk | isWriting)) === 0) this.#letGo(place, cell)
  }

  /** The cell's row was deleted, and the backend never had it. */
  #letGo(place: SegmentTable, cell: number): void {
    place.setFlags(cell, 0)
    place.held--
    this.#held--
    const committed = this.#rows.committedGeneration
    if (place.generation(cell) <= committed) this.#table.remove(place, cell)
    else place.replaceCommitted(cell, committed, absent, undefined)
  }

  #release({ place, cell }: Spot, keep: boolean): void {
    const flags = place.flags(cell)
    const isThere = this.#load(place, cell) >= decoded
    this.#differ(place, Number((flags & isOnDisk) !== 0) - Number(isThere))
    place.held--
    place.writing--
    this.#held--
    place.below += Number(isThere) - Number((flags & isOnDisk) !== 0)
    place.setFlags(cell, isThere ? isOnDisk : 0)
    if (!isThere || !keep) this.#forget(place, cell)
    if (place.segment.size === 0) this.#table.detach(place.segment)
  }

  /** The backend has what is committed of this row. It goes, as far as no uncommitted change needs the cell. */
  #forget(place: SegmentTable, cell: number): void {
    const isThere = (place.flags(cell) & isOnDisk) !== 0
    if (isThere && !place.segment.isPartial) this.#rows.becamePartial(place.segment)
    const committed = this.#rows.committedGeneration
    if (place.generation(cell) > committed) {
      place.replaceCommitted(cell, committed, absent, undefined)
      return
    }
    if (isThere) place.below--
    place.setFlags(cell, 0)
    this.#table.remove(place, cell)
  }

  #differ(place: SegmentTable, by: number): void {
    place.difference += by
    this.difference += by
  }

  #load(place: SegmentTable, cell: number): number {
    const committed = this.#rows.committedGeneration
    return place.load(cell, committed, committed, this.#codec, this.#row)
  }

  #bytes(place: SegmentTable, cell: number): Uint8Array | null {
    return this.#load(place, cell) < decoded ? null : this.#codec.toBackend(this.#row)
  }

  #transient({ place, cell }: Spot): Uint8Array | null {
    return this.#load(place, cell) < decoded ? null : this.#codec.toBackendTransient(this.#row)
  }
}

function heldCells(place: SegmentTable): number[] {
  const cells: number[] = []
  if (place.held === 0) return cells
  for (const cell of place.table.taken()) if (place.flags(cell) & isHeld) cells.push(cell)
  return cells
}
