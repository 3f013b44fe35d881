/** The committed rows of a key-value store in memory, as bytes. */
import type { CommittedRows } from '../rows/committed-rows.ts'
import { Row } from '../rows/row.ts'
import type { BufferedKeyValues } from './key-value-buffer.ts'
import { absent, decoded } from './cell-record.ts'

export class KeyValuesInMemory implements CommittedRows {
  readonly #of: BufferedKeyValues
  readonly #row = new Row(undefined, undefined, 0)

  constructor(of: BufferedKeyValues) {
    this.#of = of
  }

  get size(): number {
    return this.#of.rows.size
  }

  getBytes(key: string): Uint8Array | undefined {
    const cell = this.#of.rows.table.find(key)
    return cell < 0 ? undefined : this.#bytes(cell)
  }

  *rangeBytes(
    from: string | undefined,
    to: string | undefined,
    reverse: boolean,
  ): IterableIterator<readonly [string, Uint8Array]> {
    for (const key of this.#of.keys(from, to, reverse)) {
      const value = this.getBytes(key)
      if (value !== undefined) yield [key, value]
    }
  }

  *allBytes(): IterableIterator<readonly [string, Uint8Array]> {
    const { table } = this.#of.rows
    for (const cell of table.taken()) {
      const value = this.#bytes(cell)
      if (value !== undefined) yield [table.keyOf(cell), value]
    }
  }

  commit(key: string, value: Uint8Array | null): void {
    const { rows, codec, committedGeneration } = this.#of
    this.#of.changedHere()
    const cell = rows.table.find(key)
    const row = value === null ? undefined : codec.fromBackend(value)
    if (cell >= 0 && rows.generation(cell) > committedGeneration) {
      rows.replaceCommitted(cell, committedGeneration, absent, row)
    } else if (row !== undefined) {
      // A walk that is under way finds it: it was there before the store counted what came.
      rows.commit(cell < 0 ? this.#of.add(key, 0) : cell, row)
    } else if (cell >= 0) {
      this.#of.remove(cell)
    }
  }

  clear(): void {
    this.#of.clear()
  }

  #bytes(cell: number): Uint8Array | undefined {
    const { rows, codec, committedGeneration } = this.#of
    const form = rows.load(cell, committedGeneration, committedGeneration, codec, this.#row)
    return form < decoded ? undefined : (codec.toBackend(this.#row) ?? undefined)
  }
}
