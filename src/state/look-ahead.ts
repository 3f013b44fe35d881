/**
 * Looks at the rows of records that are about to be processed. A row among a hundred thousand lies in no cache, and to look
 * it up means to wait for memory three or four times, each time for the address of the next. Alone these waits are a good
 * part of all that a record costs; for many records at once they take about as long as for one. Nothing is read here
 * but to bring the rows near: whether it was worth it changes no result.
 */
import { hashOfBytes, type SlotTable } from './slot-table.ts'

/** Records looked at together: the processor cannot wait for many more at once. */
export const mostAhead = 16
/** So many rows are kept near by the processor's own caches. */
const nearRows = 4096

/** Where the rows of a store lie. */
export class RowsAhead {
  readonly table: SlotTable
  readonly #values: readonly unknown[]

  constructor(table: SlotTable, values: readonly unknown[]) {
    this.table = table
    this.#values = values
  }

  get areFar(): boolean {
    return this.table.capacity > nearRows
  }

  /** Asks what kind of thing a value is, which stands in the value itself. */
  touchValue(slot: number): number {
    return slot < this.#values.length && typeof this.#values[slot] === 'object' ? 1 : 0
  }
}

export class LookAhead {
  readonly #rows: RowsAhead[] = []
  readonly #hashes = new Int32Array(mostAhead)
  readonly #slots = new Int32Array(mostAhead)
  #count = 0
  /** What was read has to be of use, or the compiler leaves the reads out. */
  seen = 0

  /** The row of this key will be asked for; at most `mostAhead` of them before `look`. */
  add(rows: RowsAhead, bytes: Uint8Array, from: number, to: number): void {
    this.#rows[this.#count] = rows
    this.#hashes[this.#count++] = hashOfBytes(bytes, from, to)
  }

  /** Each loop waits once for all of its rows: no read of one depends on that of another. */
  look(): void {
    const rows = this.#rows
    const hashes = this.#hashes
    const slots = this.#slots
    const count = this.#count
    let seen = 0
    for (let i = 0; i < count; i++) seen ^= (rows[i] as RowsAhead).table.touchIndex(hashes[i] as number)
    for (let i = 0; i < count; i++) slots[i] = (rows[i] as RowsAhead).table.likelySlot(hashes[i] as number)
    for (let i = 0; i < count; i++) seen ^= (rows[i] as RowsAhead).table.touch(slots[i] as number)
    for (let i = 0; i < count; i++) seen ^= (rows[i] as RowsAhead).touchValue(slots[i] as number)
    this.seen = seen
    this.#count = 0
  }
}
