/**
 * The rows of windows that are named in the same way: a `RowTable`, and how many of its
 * cells a store that is written behind has still to write.
 */
import { encoded, plainNumber } from '../table/cell-record.ts'
import type { Row, RowCodec } from '../rows/row.ts'
import { RowTable, type SpareColumns } from '../table/row-table.ts'
import { CellTable } from '../table/cell-table.ts'
import type { UndoLog } from '../table/undo-log.ts'
import { keyBytes } from '../rows/bytes.ts'
import type { Segment } from './window-table.ts'

/** In an undo log: the row came and went within its epoch, and nobody is to hear of it. */
export const unpublished = -1

/** What is known of a cell of a store that is written behind: its committed row is not in the backend yet; … */
export const isHeld = 1
/** … the backend has a row of this key, or may have, as long as nobody has looked; … */
export const isOnDisk = 2
export const isUnknown = 4
/** … the row is being written. */
export const isWriting = 8

const leastCapacity = 8

export class SegmentTable extends RowTable {
  readonly segment: Segment
  /** What stands behind the keys in their rows' key strings, and in bytes. */
  readonly behind: string
  readonly tail: Uint8Array
  /** The generation with which its first row came; 0: it has rows that came committed. */
  firstGeneration: number
  /** Of the cells: those whose row is held, and those of which the backend has a row, or may have one. */
  held = 0
  below = 0
  /** By how much the rows held here change the number of the backend's. */
  difference = 0
  /** Cells that are being written. */
  writing = 0

  constructor(segment: Segment, behind: string, generation: number, spare: SpareColumns | undefined) {
    super(spare?.table ?? new CellTable(leastCapacity), spare)
    this.segment = segment
    this.behind = behind
    this.tail = keyBytes(behind)
    this.firstGeneration = generation
  }

  rowOf(cell: number): string {
    return this.segment.before + this.table.keyOf(cell) + this.behind
  }

  /** The value for a reader; what it had to decode for that is kept, as far as it may be. */
  read(cell: number, codec: RowCodec, row: Row): unknown {
    const form = this.form(cell)
    if (form === plainNumber) return this.number(cell)
    const kept = this.values[cell]
    this.fill(row, cell, codec)
    const value = codec.value(row)
    if (form === encoded && row.bytes === undefined && this.values[cell] === kept) this.set(cell, row)
    return value
  }

  /** The row that came in the open epoch, and in no other place, goes. */
  forgetBirth(cell: number, log: UndoLog): boolean {
    if (!this.isBornIn(cell, log)) return false
    log.replace(this.undo(cell), unpublished, undefined, 0)
    return true
  }
}
