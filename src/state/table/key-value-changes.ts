/** The changes of a sealed epoch, out of their columns. */
import { Row, type RowCodec } from '../rows/row.ts'
import { Scratch } from '../rows/scratch.ts'
import { mostPrefetched, type RowPrefetch } from './prefetch.ts'
import type { RowTable } from './row-table.ts'
import type { ShowChange } from './sealed-epoch.ts'
import { decoded, plainNumber } from './cell-record.ts'
import type { UndoLog } from './undo-log.ts'

const scratch = new Scratch()

/** The rows that the changes are read from. */
interface Rows {
  readonly rows: RowTable
  readonly codec: RowCodec
  readonly committedGeneration: number
  readonly ahead: RowPrefetch
}

export class KeyValueChanges {
  /** What was read ahead has to be of use, or the compiler leaves the reads out. */
  seen = 0
  readonly #of: Rows
  readonly #row = new Row(undefined, undefined, 0)

  constructor(of: Rows) {
    this.#of = of
  }

  /** Shows each row of a generation. */
  each(log: UndoLog, now: number, show: ShowChange): void {
    const { rows, codec, committedGeneration } = this.#of
    const { table } = rows
    const row = this.#row
    for (let at = 0; at < log.count; at++) {
      if (at % mostPrefetched === 0) this.#touch(log, at)
      const cell = log.cell(at)
      const key = scratch.of(table.keyLength(cell))
      table.copyKey(cell, key, 0)
      if (rows.form(cell) === plainNumber && rows.generation(cell) <= log.generation) {
        const bytes = codec.numberBytes(rows.number(cell))
        if (bytes !== undefined) {
          show(key, bytes, rows.timestamp(cell))
          continue
        }
      }
      const isThere = rows.load(cell, log.generation, committedGeneration, codec, row) >= decoded
      if (isThere) show(key, codec.bytes(row, true), row.timestamp)
      else show(key, null, now)
    }
  }

  /** Prefetches the next rows, so that cache misses overlap: where there are many, they lie in no cache. */
  #touch(log: UndoLog, from: number): void {
    const { rows, ahead } = this.#of
    const end = Math.min(log.count, from + mostPrefetched)
    let seen = 0
    for (let at = from; at < end; at++) seen ^= rows.touch(log.cell(at))
    if (rows.values.length > 0) for (let at = from; at < end; at++) seen ^= ahead.touchValue(log.cell(at))
    this.seen = seen
  }
}
