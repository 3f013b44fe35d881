/** All windows of one start, one after the other in the order of their keys, without an object for any of them. */
import { Row, type RowCodec } from '../rows/row.ts'
import { sortedCells } from './window-order.ts'
import { isYounger } from '../rows/merged-rows.ts'
import { decoded } from '../table/cell-record.ts'
import type { SegmentTable } from './segment-table.ts'

export class WindowCursor {
  readonly #place: SegmentTable | undefined
  readonly #codec: RowCodec
  /** Rows that came later are not shown. */
  readonly #youngest: number
  readonly #cells: readonly number[]
  readonly #row = new Row(undefined, undefined, 0)
  #next = 0
  #cell = -1

  constructor(place: SegmentTable | undefined, codec: RowCodec, youngest: number) {
    this.#place = place
    this.#codec = codec
    this.#youngest = youngest
    const cells: number[] = []
    if (place !== undefined) {
      const { used } = place.table
      for (let cell = 0; cell < used; cell++) if (place.form(cell) >= decoded) cells.push(cell)
      this.#cells = sortedCells(place.table, cells)
    } else {
      this.#cells = cells
    }
  }

  /** Goes to the next row; false: there is none. A row is shown as it is when its turn comes. */
  next(): boolean {
    const place = this.#place
    if (place === undefined) return false
    while (this.#next < this.#cells.length) {
      const cell = this.#cells[this.#next++] as number
      if (place.form(cell) >= decoded && !isYounger(place.bornAt(cell), this.#youngest)) {
        this.#cell = cell
        return true
      }
    }
    return false
  }

  /** The key string. */
  get key(): string {
    return (this.#place as SegmentTable).table.keyOf(this.#cell)
  }

  get value(): unknown {
    return (this.#place as SegmentTable).read(this.#cell, this.#codec, this.#row)
  }

  get timestamp(): number {
    return (this.#place as SegmentTable).timestamp(this.#cell)
  }
}
