/**
 * The rows of a segment by key, for stores in which each key has windows of many starts: a join, or a sliding window, reads those
 * of one key with every record. Made when they are first read so.
 */
import type { ValueAndTimestamp } from '../contract.ts'
import { windowSuffix } from '../rows/layout.ts'
import { Row, type RowCodec } from '../rows/row.ts'
import { firstNot, runLength, SortedList } from '../rows/sorted-list.ts'
import { isYounger } from '../rows/merged-rows.ts'
import { decoded } from '../table/cell-record.ts'
import type { SegmentTable } from './segment-table.ts'
import type { Segment } from './window-table.ts'

/** A row that was found by its key, as it is when it is read. */
export class KeyRow {
  readonly start: number
  readonly sequence: number
  readonly #place: SegmentTable
  readonly #cell: number
  readonly #youngest: number

  constructor(place: SegmentTable, cell: number, start: number, sequence: number, youngest: number) {
    this.start = start
    this.sequence = sequence
    this.#place = place
    this.#cell = cell
    this.#youngest = youngest
  }

  /** Undefined: it has gone meanwhile. */
  read(codec: RowCodec): ValueAndTimestamp<unknown> | undefined {
    const place = this.#place
    const cell = this.#cell
    if (!(place.form(cell) >= decoded) || isYounger(place.bornAt(cell), this.#youngest)) return undefined
    return { value: place.read(cell, codec, scratch), timestamp: place.timestamp(cell) }
  }
}

const scratch = new Row(undefined, undefined, 0)

export class KeyIndex {
  readonly #segment: Segment
  /**
   * Cells in the order of start and sequence number, those of the segment's other windows as their complement; most keys have
   * a single one, and few so many that a plain array would be slow.
   */
  readonly #cells = new Map<string, number | number[] | SortedList<number>>()

  constructor(segment: Segment) {
    this.#segment = segment
    for (const place of segment.places) {
      for (const cell of place.table.taken()) this.add(this.#keyOf(place, cell), place, cell)
    }
  }

  /** `key`: that of the application, without start and sequence number. */
  add(key: string, place: SegmentTable, cell: number): void {
    const code = this.#codeOf(place, cell)
    const cells = this.#cells.get(key)
    if (cells === undefined) {
      this.#cells.set(key, code)
    } else if (typeof cells === 'number') {
      this.#cells.set(key, this.#compare(cells, code) < 0 ? [cells, code] : [code, cells])
    } else if (!Array.isArray(cells)) {
      cells.add(code)
    } else if (cells.length < runLength) {
      if (this.#compare(cells[cells.length - 1] as number, code) < 0) cells.push(code)
      else cells.splice(this.#positionOf(cells, code), 0, code)
    } else {
      const list = new SortedList<number>((a, b) => this.#compare(a, b))
      for (const each of cells) list.add(each)
      list.add(code)
      this.#cells.set(key, list)
    }
  }

  delete(place: SegmentTable, cell: number): void {
    const key = this.#keyOf(place, cell)
    const cells = this.#cells.get(key)
    if (typeof cells !== 'object') {
      this.#cells.delete(key)
      return
    }
    const code = this.#codeOf(place, cell)
    if (Array.isArray(cells)) {
      const i = this.#positionOf(cells, code)
      if (cells[i] === code) cells.splice(i, 1)
      if (cells.length === 0) this.#cells.delete(key)
    } else {
      cells.remove(code)
      if (cells.size === 0) this.#cells.delete(key)
    }
  }

  /** Rows of this key that start in [first, last], in order. Rows that are younger are not shown. */
  find(key: string, first: number, last: number, youngest: number): KeyRow[] {
    const found: KeyRow[] = []
    const cells = this.#cells.get(key)
    if (cells === undefined) return found
    if (typeof cells === 'number') {
      if (this.#startOf(cells) >= first) this.#take(cells, last, youngest, found)
    } else if (Array.isArray(cells)) {
      let i = firstNot(cells, (code) => this.#startOf(code) < first)
      while (i < cells.length && this.#take(cells[i] as number, last, youngest, found)) i++
    } else {
      cells.each(
        (code) => this.#startOf(code) < first,
        (code) => this.#take(code, last, youngest, found),
      )
    }
    return found
  }

  /** False: it starts too late, and so do all behind it. */
  #take(code: number, last: number, youngest: number, into: KeyRow[]): boolean {
    const start = this.#startOf(code)
    if (start > last) return false
    const { common, others } = this.#segment
    if (code >= 0) into.push(new KeyRow(common, code, start, 0, youngest))
    else into.push(new KeyRow(others as SegmentTable, ~code, start, this.#sequenceOf(code), youngest))
    return true
  }

  #positionOf(cells: readonly number[], code: number): number {
    return firstNot(cells, (each) => this.#compare(each, code) < 0)
  }

  #codeOf(place: SegmentTable, cell: number): number {
    return place === this.#segment.common ? cell : ~cell
  }

  #keyOf(place: SegmentTable, cell: number): string {
    const key = place.table.keyOf(cell)
    return place === this.#segment.common ? key : key.slice(0, -windowSuffix)
  }

  #startOf(code: number): number {
    if (code >= 0) return this.#segment.commonStart
    const { table } = this.#segment.others as SegmentTable
    const at = table.keyLength(~code) - windowSuffix
    return table.numberAt(~code, at, 4) * 4294967296 + table.numberAt(~code, at + 4, 4)
  }

  #sequenceOf(code: number): number {
    if (code >= 0) return 0
    const { table } = this.#segment.others as SegmentTable
    return table.numberAt(~code, table.keyLength(~code) - 4, 4)
  }

  #compare(a: number, b: number): number {
    return this.#startOf(a) - this.#startOf(b) || this.#sequenceOf(a) - this.#sequenceOf(b)
  }
}
