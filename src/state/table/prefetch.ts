/**
 * Looks at the rows of records that are about to be processed. A row among a hundred thousand lies in no cache, and to look
 * it up means to wait for memory three or four times, each time for the address of the next. Alone these waits are a good
 * part of all that a record costs; for many records at once they take about as long as for one. Nothing is read here
 * but to have the rows in the cache: whether it was worth it changes no result.
 */
import { hashOfBytes, type CellTable } from './cell-table.ts'

/** Records looked at together: the processor cannot wait for many more at once. */
export const mostPrefetched = 32
/** So many rows stay in the processor's caches. */
const nearRows = 4096

/** Where the rows of a store lie, and which of them are looked at next. */
export class RowPrefetch {
  readonly table: CellTable
  readonly #values: readonly unknown[]
  readonly #hashes = new Int32Array(mostPrefetched)
  readonly #cells = new Int32Array(mostPrefetched)
  #count = 0

  constructor(table: CellTable, values: readonly unknown[]) {
    this.table = table
    this.#values = values
  }

  get isCacheCold(): boolean {
    return this.table.capacity > nearRows
  }

  /** Takes up the key with this hash; true for the first one. */
  add(hash: number): boolean {
    this.#hashes[this.#count] = hash
    return this.#count++ === 0
  }

  touchIndex(): number {
    return this.table.touchIndex(this.#hashes, this.#count)
  }

  /** Reads the rows, and forgets the keys. */
  touchRows(): number {
    const cells = this.#cells
    const count = this.#count
    this.#count = 0
    let seen = this.table.touch(this.#hashes, cells, count)
    if (this.#values.length > 0) for (let i = 0; i < count; i++) seen ^= this.touchValue(cells[i] as number)
    return seen
  }

  /** Asks what kind of thing a value is, which stands in the value itself. */
  touchValue(cell: number): number {
    return cell < this.#values.length && typeof this.#values[cell] === 'object' ? 1 : 0
  }
}

export class Prefetch {
  /** Stores of which there are keys. */
  readonly #rows: RowPrefetch[] = []
  #count = 0
  /** What was read has to be of use, or the compiler leaves the reads out. */
  seen = 0

  /** The row of this key will be asked for; at most `mostPrefetched` of them before `look`. */
  add(rows: RowPrefetch, bytes: Uint8Array, from: number, to: number): void {
    if (rows.add(hashOfBytes(bytes, from, to))) this.#rows[this.#count++] = rows
  }

  look(): void {
    const rows = this.#rows
    const count = this.#count
    let seen = 0
    for (let i = 0; i < count; i++) seen ^= (rows[i] as RowPrefetch).touchIndex()
    for (let i = 0; i < count; i++) seen ^= (rows[i] as RowPrefetch).touchRows()
    this.seen = seen
    this.#count = 0
  }
}
