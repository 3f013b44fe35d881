/** The committed rows of a window store in memory, as bytes. */
import type { CommittedRows } from '../rows/committed-rows.ts'
import { Row } from '../rows/row.ts'
import type { BufferedWindows } from './window-buffer.ts'
import { absent, decoded } from '../table/cell-record.ts'
import type { SegmentTable } from './segment-table.ts'

export class WindowsInMemory implements CommittedRows {
  readonly #rows: BufferedWindows
  readonly #row = new Row(undefined, undefined, 0)

  constructor(rows: BufferedWindows) {
    this.#rows = rows
  }

  get size(): number {
    return this.#rows.table.size
  }

  getBytes(key: string): Uint8Array | undefined {
    const { table } = this.#rows
    return table.seekRow(key) ? this.#bytes(table.place as SegmentTable, table.cell) : undefined
  }

  *rangeBytes(
    from: string | undefined,
    to: string | undefined,
    reverse: boolean,
  ): IterableIterator<readonly [string, Uint8Array]> {
    for (const key of this.#rows.table.rows(from, to, reverse)) {
      const value = this.getBytes(key)
      if (value !== undefined) yield [key, value]
    }
  }

  *allBytes(): IterableIterator<readonly [string, Uint8Array]> {
    for (const { places } of this.#rows.table.segments) {
      for (const place of places) {
        for (const cell of place.table.taken()) {
          const value = this.#bytes(place, cell)
          if (value !== undefined) yield [place.rowOf(cell), value]
        }
      }
    }
  }

  commit(key: string, value: Uint8Array | null): void {
    const { table, codec, committedGeneration } = this.#rows
    const row = value === null ? undefined : codec.fromBackend(value)
    this.#rows.changedHere()
    if (!table.seekRow(key)) {
      if (row === undefined) return
      // A walk that is under way finds it: it was there before the store counted what came.
      table.addRow(key, 0, 0)
    }
    const place = table.place as SegmentTable
    const { cell } = table
    place.firstGeneration = 0
    if (place.generation(cell) > committedGeneration) {
      place.replaceCommitted(cell, committedGeneration, absent, row)
    } else if (row !== undefined) {
      place.commit(cell, row)
    } else {
      table.remove(place, cell)
      if (place.segment.size === 0) table.detach(place.segment)
    }
  }

  clear(): void {
    this.#rows.table.clear()
    this.#rows.cleared()
  }

  #bytes(place: SegmentTable, cell: number): Uint8Array | undefined {
    const { codec, committedGeneration } = this.#rows
    const form = place.load(cell, committedGeneration, committedGeneration, codec, this.#row)
    return form < decoded ? undefined : (codec.toBackend(this.#row) ?? undefined)
  }
}
