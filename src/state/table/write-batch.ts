/** Rows of a store that are written to its backend together. */
import type { HashedRows } from '../contract.ts'
import type { HeldBatch } from '../backends/write-buffer.ts'
import { mostPrefetched } from './prefetch.ts'
import type { CellTable } from './cell-table.ts'

const noHashes = new Uint32Array(0)

/** Who holds the rows until they are written: `key-value-buffer.ts`. */
interface Holder {
  /** The committed row of a cell, null where it is deleted; valid until the next call. */
  committedAt(cell: number): Uint8Array | null
  /** The row is written, as what it is at that moment. */
  release(cell: number, isThere: boolean, keep: boolean): void
}

export class WriteBatch implements HeldBatch {
  readonly count: number
  readonly hashed: HashedRows | undefined
  readonly hashes: Uint32Array
  /** What was read has to be of use, or the compiler leaves the reads out. */
  seen = 0
  readonly #holder: Holder
  readonly #table: CellTable
  readonly #cells: Int32Array
  /** By place: 1 where a value was written, and no deletion. */
  readonly #isThere: Uint8Array

  constructor(holder: Holder, table: CellTable, cells: Int32Array, hashes: Uint32Array | undefined) {
    this.count = cells.length
    this.#isThere = new Uint8Array(cells.length)
    this.hashed = hashes && this
    this.hashes = hashes ?? noHashes
    this.#holder = holder
    this.#table = table
    this.#cells = cells
  }

  key(place: number): string {
    return this.#table.keyOf(this.#cells[place] as number)
  }

  keyLength(place: number): number {
    return this.#table.keyLength(this.#cells[place] as number)
  }

  writeKey(place: number, target: Uint8Array, at: number): number {
    return this.#table.copyKey(this.#cells[place] as number, target, at)
  }

  value(place: number): Uint8Array | null {
    const value = this.#holder.committedAt(this.#cells[place] as number)
    this.#isThere[place] = value === null ? 0 : 1
    return value
  }

  touch(from: number, to: number): void {
    this.seen = this.#table.touchCells(this.#cells, from, to)
  }

  release(from: number, to: number, keep: boolean): void {
    for (let start = from; start < to; start += mostPrefetched) {
      const end = Math.min(to, start + mostPrefetched)
      // A row that stays is not looked at again: what was written is known.
      if (!keep) this.touch(start, end)
      for (let i = start; i < end; i++) {
        this.#holder.release(this.#cells[i] as number, this.#isThere[i] === 1, keep)
      }
    }
  }
}
