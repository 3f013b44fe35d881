/**
 * Committed rows of windows in front of a backend that is written behind. They stay here until their windows are over, as far
 * as there is room: what came and went between two writes was never on the disk, and has nothing to be deleted there.
 */
import type { FrontRows, HeldBatch } from './front-rows.ts'
import { sortByKey } from './key-order.ts'
import { Row, type RowCodec } from './row.ts'
import { absent, decoded, deletion } from './slot-record.ts'
import type { UndoLog } from './undo-log.ts'
import { sortedSlots } from './window-order.ts'
import { isBelow, isHeld, isUnknown, isWriting, neverTold, type WindowPlace } from './window-place.ts'
import type { Segment, WindowTable } from './window-table.ts'

/** What a row takes beside its key and value: numbers, the index, its place among the values. */
const overheadBytes = 112

/** The rows themselves: see `window-rows.ts`. */
export interface FrontWindows {
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
  readonly place: WindowPlace
  readonly slot: number
}

export class WindowFront implements FrontRows {
  difference = 0
  readonly #rows: FrontWindows
  readonly #table: WindowTable
  readonly #codec: RowCodec
  readonly #row = new Row(undefined, undefined, 0)
  /** Rows that the backend does not have. */
  #held = 0
  /** Bytes of a row's key and value, smoothed. */
  #rowBytes = 0

  constructor(rows: FrontWindows) {
    this.#rows = rows
    this.#table = rows.table
    this.#codec = rows.codec
  }

  get heldBytes(): number {
    return Math.round(this.#held * (overheadBytes + this.#rowBytes))
  }

  get frontBytes(): number {
    return Math.round(this.#table.size * (overheadBytes + this.#rowBytes))
  }

  /** A slot was given to a key; `below`: whether the backend has a row, where that is known. */
  added(place: WindowPlace, slot: number, below: boolean | undefined): void {
    let flags = 0
    if (place.segment.isPartial && below !== false) flags = below === undefined ? isBelow | isUnknown : isBelow
    place.setFlags(slot, flags)
    if (flags !== 0) place.below++
  }

  /** Whether the slot's committed row, or that it was deleted, is still to be written. */
  holds(place: WindowPlace, slot: number): boolean {
    return (place.flags(slot) & isHeld) !== 0
  }

  /** The slot is given back: what it had was never committed. */
  removed(place: WindowPlace, slot: number): void {
    if (place.flags(slot) & isBelow) place.below--
    place.setFlags(slot, 0)
  }

  /** An epoch is committed: these are its rows of one place. */
  settle(place: WindowPlace, log: UndoLog): void {
    for (let at = 0; at < log.count; at++) {
      const form = log.form(at)
      if (form !== neverTold) this.#took(place, log.slot(at), form >= decoded)
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
    const form = this.#load(this.#table.place as WindowPlace, this.#table.slot)
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
      this.added(table.place as WindowPlace, table.slot, undefined)
    }
    const place = table.place as WindowPlace
    const { slot } = table
    const committed = this.#rows.committedGeneration
    const wasThere = this.#load(place, slot) >= decoded
    place.firstGeneration = 0
    if (place.generation(slot) > committed) place.replaceCommitted(slot, committed, deletion, row)
    else place.commit(slot, row)
    this.#took(place, slot, wasThere)
    if (place.segment.size === 0) table.detach(place.segment)
    this.#rows.changedHere()
  }

  *held(): IterableIterator<readonly [string, Uint8Array | null]> {
    for (const segment of this.#table.segments) {
      for (const place of segment.places) {
        for (const slot of heldSlots(place)) yield [place.rowOf(slot), this.#bytes(place, slot)]
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
        for (const slot of sortedSlots(place.table, heldSlots(place))) own.push({ place, slot })
      }
      if (held.length > 1) {
        sortByKey(
          own.map(({ place, slot }) => place.rowOf(slot)),
          own,
        )
      }
      for (const spot of own) spots.push(spot)
    }
    for (const { place, slot } of spots) {
      place.setFlags(slot, place.flags(slot) | isWriting)
      place.writing++
    }
    const at = (i: number): Spot => spots[i] as Spot
    return {
      count: spots.length,
      key: (i) => at(i).place.rowOf(at(i).slot),
      value: (i) => this.#briefly(at(i)),
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
        for (const slot of heldSlots(place)) {
          const flags = place.flags(slot)
          if ((flags & isUnknown) === 0) continue
          const found = has(place.rowOf(slot))
          place.setFlags(slot, flags & ~(found ? isUnknown : isUnknown | isBelow))
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
        for (const slot of [...place.table.taken()]) {
          const flags = place.flags(slot)
          if ((flags & isHeld) === 0 && (flags & isBelow) !== 0) this.#forget(place, slot)
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

  /** The slot's committed row is another one now; the backend does not have it. */
  #took(place: WindowPlace, slot: number, before: boolean): void {
    const after = this.#load(place, slot) >= decoded
    const flags = place.flags(slot)
    if (flags & isHeld) {
      this.#differ(place, Number(after) - Number(before))
    } else {
      place.setFlags(slot, flags | isHeld)
      place.held++
      this.#differ(place, Number(after) - Number((flags & isBelow) !== 0))
      if (after && (this.#held & 7) === 0) {
        const bytes = place.table.keyLength(slot) + 2 * this.#codec.weight(this.#row)
        this.#rowBytes += (bytes - this.#rowBytes) / Math.min(this.#held + 1, 16)
      }
      this.#held++
    }
    if (!after && (flags & (isBelow | isWriting)) === 0) this.#letGo(place, slot)
  }

  /** The slot's row was deleted, and the backend never had it. */
  #letGo(place: WindowPlace, slot: number): void {
    place.setFlags(slot, 0)
    place.held--
    this.#held--
    const committed = this.#rows.committedGeneration
    if (place.generation(slot) <= committed) this.#table.remove(place, slot)
    else place.replaceCommitted(slot, committed, absent, undefined)
  }

  #release({ place, slot }: Spot, keep: boolean): void {
    const flags = place.flags(slot)
    const isThere = this.#load(place, slot) >= decoded
    this.#differ(place, Number((flags & isBelow) !== 0) - Number(isThere))
    place.held--
    place.writing--
    this.#held--
    place.below += Number(isThere) - Number((flags & isBelow) !== 0)
    place.setFlags(slot, isThere ? isBelow : 0)
    if (!isThere || !keep) this.#forget(place, slot)
    if (place.segment.size === 0) this.#table.detach(place.segment)
  }

  /** The backend has what is committed of this row. It goes, as far as no uncommitted change needs the slot. */
  #forget(place: WindowPlace, slot: number): void {
    const isThere = (place.flags(slot) & isBelow) !== 0
    if (isThere && !place.segment.isPartial) this.#rows.becamePartial(place.segment)
    const committed = this.#rows.committedGeneration
    if (place.generation(slot) > committed) {
      place.replaceCommitted(slot, committed, absent, undefined)
      return
    }
    if (isThere) place.below--
    place.setFlags(slot, 0)
    this.#table.remove(place, slot)
  }

  #differ(place: WindowPlace, by: number): void {
    place.difference += by
    this.difference += by
  }

  #load(place: WindowPlace, slot: number): number {
    const committed = this.#rows.committedGeneration
    return place.load(slot, committed, committed, this.#codec, this.#row)
  }

  #bytes(place: WindowPlace, slot: number): Uint8Array | null {
    return this.#load(place, slot) < decoded ? null : this.#codec.toBackend(this.#row)
  }

  #briefly({ place, slot }: Spot): Uint8Array | null {
    return this.#load(place, slot) < decoded ? null : this.#codec.toBackendBriefly(this.#row)
  }
}

function heldSlots(place: WindowPlace): number[] {
  const slots: number[] = []
  if (place.held === 0) return slots
  for (const slot of place.table.taken()) if (place.flags(slot) & isHeld) slots.push(slot)
  return slots
}
