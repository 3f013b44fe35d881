/** Committed rows in front of a backend, in the columns in which a store keeps its uncommitted ones as well. */
import { assert } from '../../base/assert.ts'
import type { WriteBuffer, HeldBatch } from '../backends/write-buffer.ts'
import type { KeyFilter } from '../backends/key-filter.ts'
import { orderByHash, orderByKey } from '../backends/key-order.ts'
import { Row, type RowCodec } from '../rows/row.ts'
import type { RowTable } from './row-table.ts'
import { WriteBatch } from './write-batch.ts'
import { absent, decoded, deletion, plainNumber } from './cell-record.ts'
import type { UndoLog } from './undo-log.ts'

/** The rows themselves: see `key-value-rows.ts`. */
export interface BufferedKeyValues {
  readonly rows: RowTable
  readonly codec: RowCodec
  /** Rows of this generation and of older ones are committed. */
  readonly committedGeneration: number
  /** A cell for a key that has none. */
  add(key: string, born: number): number
  /** Takes a row out. */
  remove(cell: number): void
  /** Keys in their order. */
  keys(from: string | undefined, to: string | undefined, reverse: boolean): IterableIterator<string>
  /** Rows have come, gone or changed. */
  changedHere(): void
  clear(): void
}

/** What a row takes beside its key and value: numbers, the index, its place among the values. */
const overheadBytes = 104

/** What is known of a cell: its row is held, somebody has looked whether the backend has one, and it has none. */
const isHeld = 1
const isKnown = 2
const isNew = 4

export class KeyValueBuffer implements WriteBuffer {
  difference = 0
  gone: KeyFilter | undefined
  readonly #of: BufferedKeyValues
  readonly #row = new Row(undefined, undefined, 0)
  /** Cells whose committed row the backend does not have, but for those that are being written. */
  #held = new Int32Array(64)
  #heldCount = 0
  /** Rows that the backend does not have, with those that are being written. */
  #count = 0
  /** Bytes of a row's key and value, smoothed. */
  #rowBytes = 0

  constructor(of: BufferedKeyValues) {
    this.#of = of
  }

  get heldBytes(): number {
    return Math.round(this.#count * (overheadBytes + this.#rowBytes))
  }

  get bufferBytes(): number {
    return Math.round(this.#of.rows.size * (overheadBytes + this.#rowBytes))
  }

  /** False: the backend has no row of a key with this hash that is not here. */
  mayBeBelow(hash: number): boolean {
    return this.gone === undefined || this.gone.has(hash)
  }

  /** A cell was given to a key; `below`: whether the backend has a row, where that is known. */
  added(cell: number, below: boolean | undefined): void {
    const { rows } = this.#of
    const isOnDisk = below ?? (this.mayBeBelow(rows.table.hashAt(cell)) ? undefined : false)
    rows.setFlags(cell, isOnDisk === undefined ? 0 : isOnDisk ? isKnown : isKnown | isNew)
  }

  /** An epoch is committed: these are its rows. */
  settle(log: UndoLog): void {
    for (let at = 0; at < log.count; at++) {
      const cell = log.cell(at)
      // What was only put is there: the row itself, one of very many, need not be looked at.
      const isThere = !log.hasDeletions || this.#load(cell) >= decoded
      this.#took(cell, log.form(at) >= decoded, isThere)
    }
  }

  committed(key: string): Uint8Array | null | undefined {
    const cell = this.#of.rows.table.find(key)
    const form = cell < 0 ? absent : this.#load(cell)
    if (form === absent) return undefined
    return form === deletion ? null : this.#of.codec.toBackend(this.#row)
  }

  keys(from: string | undefined, to: string | undefined, reverse: boolean): IterableIterator<string> {
    return this.#of.keys(from, to, reverse)
  }

  hold(key: string, value: Uint8Array | null): void {
    const { rows, codec, committedGeneration } = this.#of
    this.#of.changedHere()
    const row = value === null ? undefined : codec.fromBackend(value)
    const found = rows.table.find(key)
    const wasThere = found >= 0 && this.#load(found) >= decoded
    const cell = found < 0 ? this.#of.add(key, 0) : found
    if (rows.generation(cell) > committedGeneration) {
      rows.replaceCommitted(cell, committedGeneration, deletion, row)
    } else {
      rows.commit(cell, row)
    }
    this.#took(cell, wasThere, row !== undefined)
  }

  *held(): IterableIterator<readonly [string, Uint8Array | null]> {
    const { rows } = this.#of
    for (const cell of rows.table.taken()) {
      if (rows.flags(cell) & isHeld) yield [rows.table.keyOf(cell), this.committedAt(cell)]
    }
  }

  take(inHashOrder: boolean): HeldBatch {
    const { table } = this.#of.rows
    const cells = this.#heldCells()
    assert(cells.length <= this.#count, `${cells.length} rows are to be written, and ${this.#count} are held`)
    this.#heldCount = 0
    const hashes = inHashOrder ? orderByHash(cells, (cell) => table.hashAt(cell)) : undefined
    if (hashes === undefined) orderByKey(cells, table)
    return new WriteBatch(this, table, cells, hashes)
  }

  compare(has: (key: string) => boolean): void {
    const { rows } = this.#of
    for (const cell of rows.table.taken()) {
      const flags = rows.flags(cell)
      if ((flags & isHeld) === 0 || flags & isKnown) continue
      const found = has(rows.table.keyOf(cell))
      if (!found) this.difference++
      rows.setFlags(cell, isHeld | isKnown | (found ? 0 : isNew))
    }
  }

  shrink(): void {
    const { rows } = this.#of
    if (rows.size === this.#count) return
    for (const cell of rows.table.taken()) if ((rows.flags(cell) & isHeld) === 0) this.#drop(cell)
  }

  leave(): void {
    const { rows } = this.#of
    for (const cell of rows.table.taken()) {
      if ((rows.flags(cell) & isHeld) === 0) this.gone?.add(rows.table.hashAt(cell))
    }
  }

  clear(): void {
    this.#of.clear()
    this.#heldCount = 0
    this.#count = 0
    this.difference = 0
  }

  /** The committed row of a cell, null where it is deleted; valid until the next call. */
  committedAt(cell: number): Uint8Array | null {
    const { rows, codec, committedGeneration } = this.#of
    if (rows.form(cell) === plainNumber && rows.generation(cell) <= committedGeneration) {
      const bytes = codec.numberToBackend(rows.number(cell), rows.timestamp(cell))
      if (bytes !== undefined) return bytes
    }
    return this.#load(cell) < decoded ? null : codec.toBackendTransient(this.#row)
  }

  /** The row is written, as what it is at that moment. */
  release(cell: number, isThere: boolean, keep: boolean): void {
    const { rows } = this.#of
    this.#count--
    this.difference -= Number(isThere) - Number((rows.flags(cell) & isNew) === 0)
    rows.setFlags(cell, isThere ? isKnown : isKnown | isNew)
    if (!keep || !isThere) this.#drop(cell)
  }

  /** The cell's committed row is another one now, which the backend does not have. `before`, `after`: whether there is a row. */
  #took(cell: number, before: boolean, after: boolean): void {
    const { rows } = this.#of
    const flags = rows.flags(cell)
    if (flags & isHeld) {
      this.difference += Number(after) - Number(before)
      return
    }
    this.difference += Number(after) - Number((flags & isNew) === 0)
    rows.setFlags(cell, flags | isHeld)
    if (this.#heldCount === this.#held.length) {
      const held = new Int32Array(2 * this.#heldCount)
      held.set(this.#held)
      this.#held = held
    }
    this.#held[this.#heldCount++] = cell
    // To look at a row is a wait for memory: a few tell enough.
    if (this.#count++ > 16 && (this.#count & 63) > 0) return
    const valueBytes = rows.form(cell) >= decoded ? 2 * rows.weight(cell) : 0
    this.#rowBytes += (rows.table.keyLength(cell) + valueBytes - this.#rowBytes) / Math.min(this.#count, 16)
  }

  /** Those that are held; where they are many as they lie in memory, since each is looked at next. */
  #heldCells(): Int32Array<ArrayBuffer> {
    const { rows } = this.#of
    const held = this.#held.subarray(0, this.#heldCount)
    const { used } = rows.table
    if (held.length <= used / 16) return held.slice()
    const cells = new Int32Array(held.length)
    let count = 0
    for (let cell = 0; cell < used; cell++) if (rows.flags(cell) & isHeld) cells[count++] = cell
    assert(count === held.length, `${held.length} rows are held, ${count} say that they are`)
    return cells
  }

  /** From now on the row is the backend's to tell. It goes, as far as no uncommitted change needs the cell. */
  #drop(cell: number): void {
    const { rows, committedGeneration } = this.#of
    this.gone?.add(rows.table.hashAt(cell))
    if (rows.generation(cell) <= committedGeneration) this.#of.remove(cell)
    else rows.replaceCommitted(cell, committedGeneration, absent, undefined)
  }

  /** Fills the row with what is committed of the cell; gives its form. */
  #load(cell: number): number {
    const { rows, codec, committedGeneration } = this.#of
    return rows.load(cell, committedGeneration, committedGeneration, codec, this.#row)
  }
}
