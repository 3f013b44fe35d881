/**
 * Rows in columns: one cell a row, with its value, its timestamp and the generation that wrote it last. What a row was before an
 * epoch changed it stands in the undo log of that epoch. Rows by key (`key-value-rows.ts`) are one such table, rows by window
 * (`segment-table.ts`) one for each segment of time. The table knows nothing of a backend: its owner says up to which generation
 * rows are committed.
 */
import { assert } from '../../base/assert.ts'
import { Row, type RowCodec, weightOf } from '../rows/row.ts'
import type { RowChanges } from '../rows/row-changes.ts'
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
} from './cell-record.ts'
import { hashOf, recordDoubles, recordInts, CellTable } from './cell-table.ts'
import type { UndoLog } from './undo-log.ts'

/** Columns that were used by a table before, and are so again. */
export interface SpareColumns {
  readonly table: CellTable
  readonly values: unknown[]
  readonly born: Float64Array
  readonly flags: Uint8Array
}

const noTable = new CellTable(1)
const noNumbers = new Float64Array(0)
const noFlags = new Uint8Array(0)

export class RowTable {
  table: CellTable
  /** By cell; as long as the last one needs whose value is no number. A table of numbers needs no array at all. */
  values: unknown[]
  /** Logs of the generations that are not committed, oldest first. */
  readonly logs: UndoLog[] = []
  /** The table's, at hand. */
  #doubles: Float64Array
  #ints: Int32Array
  /** Counts the rows that came: a walk leaves out those younger than itself. */
  #born: Float64Array
  #flags: Uint8Array

  constructor(table: CellTable, spare?: SpareColumns) {
    this.table = table
    this.#doubles = table.doubles
    this.#ints = table.ints
    this.values = spare?.values ?? []
    this.#born = spare?.born ?? new Float64Array(table.capacity)
    this.#flags = spare?.flags ?? noFlags
  }

  /** Number of rows, those that say that their key has none included. */
  get size(): number {
    return this.table.size
  }

  /** Gives its columns, emptied, to whoever comes next. Who still holds the table finds no rows in it. */
  giveColumns(): SpareColumns {
    const columns = { table: this.table, values: this.values, born: this.#born, flags: this.#flags }
    columns.table.empty()
    columns.values.length = 0
    columns.flags.fill(0)
    this.table = noTable
    this.values = []
    this.#moved(noNumbers)
    this.#flags = noFlags
    return columns
  }

  clear(): void {
    this.table.clear()
    this.values.length = 0
    this.#moved(new Float64Array(this.table.capacity))
    this.#flags = noFlags
  }

  /** A cell for a key that has none. `born`: how many rows came before; `hash`: that of the key. */
  add(key: string, born: number, hash = hashOf(key)): number {
    const { table } = this
    const cell = table.add(key, hash)
    if (cell >= this.#born.length) this.#grow()
    this.#born[cell] = born
    return cell
  }

  remove(cell: number): void {
    this.#ints[cell * recordInts + formInt] = absent
    this.#keep(cell, undefined)
    this.table.remove(cell)
  }

  setBorn(cell: number, born: number): void {
    this.#born[cell] = born
  }

  bornAt(cell: number): number {
    return this.#born[cell] as number
  }

  /** What the owner has noted of the cell in `setFlags`; 0 in a cell that was never noted. */
  flags(cell: number): number {
    return cell < this.#flags.length ? (this.#flags[cell] as number) : 0
  }

  setFlags(cell: number, flags: number): void {
    if (cell >= this.#flags.length) {
      const grown = new Uint8Array(this.table.capacity)
      grown.set(this.#flags)
      this.#flags = grown
    }
    this.#flags[cell] = flags
  }

  form(cell: number): number {
    return this.#ints[cell * recordInts + formInt] as number
  }

  generation(cell: number): number {
    return this.#ints[cell * recordInts + generationInt] as number
  }

  timestamp(cell: number): number {
    return this.#doubles[cell * recordDoubles + timestampDouble] as number
  }

  /** The value of a cell whose form is `plainNumber`. */
  number(cell: number): number {
    return this.#doubles[cell * recordDoubles + numberDouble] as number
  }

  /** What the cell holds; not to be asked of a deletion. */
  value(cell: number): unknown {
    const isNumber = this.#ints[cell * recordInts + formInt] === plainNumber
    return isNumber ? this.#doubles[cell * recordDoubles + numberDouble] : this.values[cell]
  }

  /** Bytes of the cell's value, about. */
  weight(cell: number): number {
    const form = this.form(cell)
    if (form === plainNumber) return 8
    return form === encoded ? (this.values[cell] as Uint8Array).length : weightOf(this.values[cell])
  }

  set(cell: number, row: Row): void {
    const { value, bytes } = row
    const i = cell * recordInts + formInt
    const d = cell * recordDoubles
    this.#doubles[d + timestampDouble] = row.timestamp
    if (bytes !== undefined) {
      this.#ints[i] = encoded
      this.#keep(cell, bytes)
    } else if (typeof value === 'number') {
      if (this.#ints[i] !== plainNumber) this.#keep(cell, undefined)
      this.#ints[i] = plainNumber
      this.#doubles[d + numberDouble] = value
    } else {
      this.#ints[i] = decoded
      this.#keep(cell, value)
    }
  }

  /** The row says that the key has none. */
  delete(cell: number): void {
    this.#ints[cell * recordInts + formInt] = deletion
    this.#keep(cell, undefined)
  }

  /** The row is committed already; none of a newer epoch lies above it. */
  commit(cell: number, row: Row | undefined): void {
    this.#ints[cell * recordInts + generationInt] = 0
    if (row === undefined) this.delete(cell)
    else this.set(cell, row)
  }

  /** The row is about to be changed for the first time in the log's epoch. */
  change(cell: number, log: UndoLog): void {
    const i = cell * recordInts
    const ints = this.#ints
    const d = cell * recordDoubles
    const form = ints[i + formInt] as number
    const generation = ints[i + generationInt] as number
    const undo = ints[i + undoInt] as number
    const timestamp = this.#doubles[d + timestampDouble] as number
    ints[i + undoInt] =
      form === plainNumber
        ? log.pushNumber(cell, this.#doubles[d + numberDouble] as number, timestamp, generation, undo)
        : log.push(cell, form, form === absent ? undefined : this.values[cell], timestamp, generation, undo)
    ints[i + generationInt] = log.generation
  }

  /** Whether the row came in the log's epoch: before that its cell was nobody's. */
  isBornIn(cell: number, log: UndoLog): boolean {
    return this.generation(cell) === log.generation && log.form(this.undo(cell)) === absent
  }

  /** Where in the log of its generation the row stands as it was before. */
  undo(cell: number): number {
    return this.#ints[cell * recordInts + undoInt] as number
  }

  /** Fills the row as it was in a generation; gives its form. What is committed is as it was in every later generation. */
  load(cell: number, generation: number, committed: number, codec: RowCodec, row: Row): number {
    const i = cell * recordInts
    let of = this.#ints[i + generationInt] as number
    if (of <= generation || of <= committed) {
      const form = this.#ints[i + formInt] as number
      fill(row, form, form < decoded ? undefined : this.value(cell), this.timestamp(cell), codec)
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

  /** The row as it is, and as it was before the log's epoch, which is the open one. */
  showChange(log: UndoLog, at: number, codec: RowCodec, into: RowChanges): void {
    const cell = log.cell(at)
    into.isThere = this.load(cell, log.generation, 0, codec, into.now) >= decoded
    into.wasThere = this.load(cell, log.generation - 1, 0, codec, into.before) >= decoded
  }

  /** Puts another row, or this form of none, where an epoch that is not committed goes back to the committed one. */
  replaceCommitted(cell: number, committed: number, form: number, row: Row | undefined): void {
    let log = this.logOf(this.generation(cell))
    let at = this.undo(cell)
    while (log.generationAt(at) > committed) {
      const before = log.undo(at)
      log = this.logOf(log.generationAt(at))
      at = before
    }
    if (row === undefined) log.replace(at, form, undefined, 0)
    else log.replace(at, encoded, row.bytes, row.timestamp)
  }

  /** The cell is again what it was before the log's epoch; gives its form. */
  takeBack(log: UndoLog, at: number): number {
    const cell = log.cell(at)
    const form = log.form(at)
    const i = cell * recordInts
    this.#ints[i + formInt] = form
    this.#ints[i + generationInt] = log.generationAt(at)
    this.#ints[i + undoInt] = log.undo(at)
    this.#doubles[cell * recordDoubles + timestampDouble] = log.timestamp(at)
    if (form === plainNumber) this.#doubles[cell * recordDoubles + numberDouble] = log.value(at) as number
    this.#keep(cell, form === decoded || form === encoded ? log.value(at) : undefined)
    return form
  }

  logOf(generation: number): UndoLog {
    for (const log of this.logs) if (log.generation === generation) return log
    assert(false, `a row belongs to generation ${generation}, of which nothing is known`)
  }

  /** The generation's log, which goes. */
  takeLog(generation: number): UndoLog {
    const log = this.logOf(generation)
    this.logs.splice(this.logs.indexOf(log), 1)
    return log
  }

  /** Reads the row's record, to have it in the processor's cache; what it gives says nothing. */
  touch(cell: number): number {
    const i = cell * recordInts
    return (this.#ints[i + formInt] as number) ^ (this.#ints[i + recordInts - 1] as number)
  }

  /** Fills the row with what the cell holds, which is no deletion. */
  fill(row: Row, cell: number, codec: RowCodec): void {
    const form = this.#ints[cell * recordInts + formInt] as number
    const d = cell * recordDoubles
    const timestamp = this.#doubles[d + timestampDouble] as number
    if (form !== plainNumber) {
      fill(row, form, this.values[cell], timestamp, codec)
      return
    }
    row.value = this.#doubles[d + numberDouble]
    row.bytes = undefined
    row.timestamp = timestamp
  }

  /** A row of its own, for walks. */
  rowAt(cell: number, codec: RowCodec): Row | undefined {
    if (this.form(cell) < decoded) return undefined
    const row = new Row(undefined, undefined, 0)
    this.fill(row, cell, codec)
    return row
  }

  /** A value that is no number. */
  #keep(cell: number, value: unknown): void {
    const { values } = this
    if (cell < values.length) values[cell] = value
    else if (value !== undefined) {
      while (values.length < cell) values.push(undefined)
      values.push(value)
    }
  }

  #grow(): void {
    const born = new Float64Array(this.table.capacity)
    born.set(this.#born)
    this.#moved(born)
  }

  #moved(born: Float64Array): void {
    this.#doubles = this.table.doubles
    this.#ints = this.table.ints
    this.#born = born
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
