/**
 * The rows of windows that are named in the same way, in columns: see `slot-table.ts`. As they were before an epoch changed
 * them they stand in undo logs, one for each epoch that is not committed.
 */
import { assert } from '../base/assert.ts'
import { keyBytes } from './bytes.ts'
import { Row, type RowCodec, weightOf } from './row.ts'
import {
  absent,
  decoded,
  deletion,
  encoded,
  formInt,
  generationInt,
  numberDouble,
  plainNumber,
  timestampDouble,
  undoInt,
} from './slot-record.ts'
import { recordDoubles, recordInts, SlotTable } from './slot-table.ts'
import type { UndoLog } from './undo-log.ts'
import type { Segment } from './window-table.ts'

/** In an undo log: the row came and went within its epoch, and nobody is to hear of it. */
export const neverTold = -1

/** What is known of a slot of a store that is written behind: its committed row is not in the backend yet; … */
export const isHeld = 1
/** … the backend has a row of this key, or may have, as long as nobody has looked; … */
export const isBelow = 2
export const isUnknown = 4
/** … the row is being written. */
export const isWriting = 8

const leastCapacity = 8

/** Columns that were used by a place before, and are so again. */
export interface SpareColumns {
  readonly table: SlotTable
  readonly values: unknown[]
  readonly born: Float64Array
  readonly flags: Uint8Array
}

const noTable = new SlotTable(1)
const noNumbers = new Float64Array(0)
const noFlags = new Uint8Array(0)

export class WindowPlace {
  readonly segment: Segment
  /** What stands behind the keys in their rows' key strings, and in bytes. */
  readonly behind: string
  readonly tail: Uint8Array
  table: SlotTable
  /** The generation with which its first row came; 0: it has rows that came committed. */
  firstGeneration: number
  /** Logs of the generations that are not committed, oldest first. */
  readonly logs: UndoLog[] = []
  /** Of the slots: those whose row is held, and those of which the backend has a row, or may have one. */
  held = 0
  below = 0
  /** By how much the rows held here change the number of the backend's. */
  difference = 0
  /** Slots that are being written. */
  writing = 0
  #doubles: Float64Array
  #ints: Int32Array
  /** Values that are not numbers; as long as all of them are, it is empty. */
  #values: unknown[]
  /** Counts the rows that came: a walk leaves out those younger than itself. */
  #born: Float64Array
  #flags: Uint8Array

  constructor(segment: Segment, behind: string, generation: number, spare: SpareColumns | undefined) {
    this.segment = segment
    this.behind = behind
    this.tail = keyBytes(behind)
    this.firstGeneration = generation
    this.table = spare?.table ?? new SlotTable(leastCapacity)
    this.#doubles = this.table.doubles
    this.#ints = this.table.ints
    this.#values = spare?.values ?? []
    this.#born = spare?.born ?? new Float64Array(this.table.capacity)
    this.#flags = spare?.flags ?? noFlags
  }

  get size(): number {
    return this.table.size
  }

  /** Gives its columns to whoever comes next. Who still holds the place finds no rows in it. */
  give(): SpareColumns {
    const columns = { table: this.table, values: this.#values, born: this.#born, flags: this.#flags }
    columns.table.empty()
    columns.values.length = 0
    columns.flags.fill(0)
    this.table = noTable
    this.#doubles = noTable.doubles
    this.#ints = noTable.ints
    this.#values = []
    this.#born = noNumbers
    this.#flags = noFlags
    return columns
  }

  rowOf(slot: number): string {
    return this.segment.before + this.table.keyOf(slot) + this.behind
  }

  /** A slot for a key that has none. */
  add(key: string, born: number): number {
    const { table } = this
    const slot = table.add(key)
    if (slot >= this.#born.length) this.#grow()
    this.#born[slot] = born
    return slot
  }

  remove(slot: number): void {
    this.#ints[slot * recordInts + formInt] = absent
    if (slot < this.#values.length) this.#values[slot] = undefined
    this.table.remove(slot)
  }

  #grow(): void {
    const { table } = this
    this.#doubles = table.doubles
    this.#ints = table.ints
    const born = new Float64Array(table.capacity)
    born.set(this.#born)
    this.#born = born
    if (this.#flags.length === 0) return
    const flags = new Uint8Array(table.capacity)
    flags.set(this.#flags)
    this.#flags = flags
  }

  bornAt(slot: number): number {
    return this.#born[slot] as number
  }

  flags(slot: number): number {
    return slot < this.#flags.length ? (this.#flags[slot] as number) : 0
  }

  setFlags(slot: number, flags: number): void {
    if (slot >= this.#flags.length) {
      const grown = new Uint8Array(this.table.capacity)
      grown.set(this.#flags)
      this.#flags = grown
    }
    this.#flags[slot] = flags
  }

  form(slot: number): number {
    return this.#ints[slot * recordInts + formInt] as number
  }

  generation(slot: number): number {
    return this.#ints[slot * recordInts + generationInt] as number
  }

  timestamp(slot: number): number {
    return this.#doubles[slot * recordDoubles + timestampDouble] as number
  }

  /** What the slot holds; not to be asked of a deletion. */
  value(slot: number): unknown {
    const isNumber = this.#ints[slot * recordInts + formInt] === plainNumber
    return isNumber ? this.#doubles[slot * recordDoubles + numberDouble] : this.#values[slot]
  }

  /** Bytes of the slot's value, about. */
  weight(slot: number): number {
    const form = this.form(slot)
    if (form === plainNumber) return 8
    return form === encoded ? (this.#values[slot] as Uint8Array).length : weightOf(this.#values[slot])
  }

  /** The value for a reader; what it had to decode for that is kept, as far as it may be. */
  read(slot: number, codec: RowCodec, row: Row): unknown {
    const form = this.form(slot)
    if (form === plainNumber) return this.#doubles[slot * recordDoubles + numberDouble]
    const kept = this.#values[slot]
    fill(row, form, kept, this.timestamp(slot), codec)
    const value = codec.value(row)
    if (form === encoded && row.bytes === undefined && this.#values[slot] === kept) this.set(slot, row)
    return value
  }

  set(slot: number, row: Row): void {
    const { value, bytes } = row
    const i = slot * recordInts + formInt
    const d = slot * recordDoubles
    this.#doubles[d + timestampDouble] = row.timestamp
    if (bytes === undefined && typeof value === 'number') {
      if (slot < this.#values.length) this.#values[slot] = undefined
      this.#ints[i] = plainNumber
      this.#doubles[d + numberDouble] = value
      return
    }
    this.#ints[i] = bytes === undefined ? decoded : encoded
    this.#keep(slot, bytes ?? value)
  }

  /** The row says that the key has none. */
  delete(slot: number): void {
    this.#ints[slot * recordInts + formInt] = deletion
    if (slot < this.#values.length) this.#values[slot] = undefined
  }

  #keep(slot: number, value: unknown): void {
    const values = this.#values
    while (values.length < slot) values.push(undefined)
    values[slot] = value
  }

  /** The row is about to be changed for the first time in the log's epoch. */
  change(slot: number, log: UndoLog): void {
    const i = slot * recordInts
    const ints = this.#ints
    const form = ints[i + formInt] as number
    const undo = ints[i + undoInt] as number
    const timestamp = this.timestamp(slot)
    const generation = ints[i + generationInt] as number
    ints[i + undoInt] =
      form === plainNumber
        ? log.pushNumber(
            slot,
            this.#doubles[slot * recordDoubles + numberDouble] as number,
            timestamp,
            generation,
            undo,
          )
        : log.push(slot, form, form === absent ? undefined : this.#values[slot], timestamp, generation, undo)
    ints[i + generationInt] = log.generation
  }

  /** The row that came in the open epoch, and in no other place, goes. */
  forgetBirth(slot: number, log: UndoLog): boolean {
    const undo = this.#ints[slot * recordInts + undoInt] as number
    if (this.generation(slot) !== log.generation || log.form(undo) !== absent) return false
    log.replace(undo, neverTold, undefined, 0)
    return true
  }

  /** The row is committed already; none of a newer epoch lies above it. */
  commit(slot: number, row: Row | undefined): void {
    this.#ints[slot * recordInts + generationInt] = 0
    if (row === undefined) this.delete(slot)
    else this.set(slot, row)
  }

  /** Fills the row as it was in a generation; gives its form. */
  load(slot: number, generation: number, committed: number, codec: RowCodec, row: Row): number {
    const i = slot * recordInts
    let of = this.#ints[i + generationInt] as number
    if (of <= generation || of <= committed) {
      const form = this.#ints[i + formInt] as number
      fill(row, form, form < decoded ? undefined : this.value(slot), this.timestamp(slot), codec)
      return form
    }
    let undo = this.#ints[i + undoInt] as number
    let log = this.logOf(of)
    for (;;) {
      of = log.generationAt(undo)
      if (of <= generation || of <= committed) break
      const before = log.undo(undo)
      log = this.logOf(of)
      undo = before
    }
    fill(row, log.form(undo), log.value(undo), log.timestamp(undo), codec)
    return log.form(undo)
  }

  /** Puts another row where an epoch that is not committed goes back to the committed one. */
  replaceCommitted(slot: number, committed: number, form: number, row: Row | undefined): void {
    let log = this.logOf(this.generation(slot))
    let at = this.#ints[slot * recordInts + undoInt] as number
    while (log.generationAt(at) > committed) {
      const before = log.undo(at)
      log = this.logOf(log.generationAt(at))
      at = before
    }
    if (row === undefined) log.replace(at, form, undefined, 0)
    else log.replace(at, encoded, row.bytes, row.timestamp)
  }

  /** The slot is again what it was before the log's epoch; gives its form. */
  takeBack(log: UndoLog, at: number): number {
    const slot = log.slot(at)
    const form = log.form(at)
    const i = slot * recordInts
    const value = log.value(at)
    this.#ints[i + formInt] = form
    this.#ints[i + generationInt] = log.generationAt(at)
    this.#ints[i + undoInt] = log.undo(at)
    this.#doubles[slot * recordDoubles + timestampDouble] = log.timestamp(at)
    if (form === plainNumber) this.#doubles[slot * recordDoubles + numberDouble] = value as number
    if (form === decoded || form === encoded) this.#keep(slot, value)
    else if (slot < this.#values.length) this.#values[slot] = undefined
    return form
  }

  logOf(generation: number): UndoLog {
    for (const log of this.logs) if (log.generation === generation) return log
    assert(false, `a window's row belongs to generation ${generation}, of which nothing is known`)
  }

  /** The generation's log, which goes. */
  takeLog(generation: number): UndoLog {
    const log = this.logOf(generation)
    this.logs.splice(this.logs.indexOf(log), 1)
    return log
  }

  /** A row of its own, for walks. */
  rowAt(slot: number, codec: RowCodec): Row | undefined {
    const form = this.form(slot)
    if (form < decoded) return undefined
    const row = new Row(undefined, undefined, 0)
    fill(row, form, this.value(slot), this.timestamp(slot), codec)
    return row
  }
}

function fill(row: Row, form: number, value: unknown, timestamp: number, codec: RowCodec): void {
  if (form === encoded) {
    codec.fill(row, value as Uint8Array, timestamp)
    return
  }
  row.value = value
  row.bytes = undefined
  row.timestamp = timestamp
}
