/** Windows that are over leave: a segment as a whole where that is possible, else row by row. */
import { windowStartOf } from '../rows/layout.ts'
import { decoded } from '../table/cell-record.ts'
import type { WindowEpochs } from './window-epochs.ts'
import type { SegmentTable } from './segment-table.ts'
import type { Segment, WindowTable } from './window-table.ts'

/** What the rows are taken out of. */
interface Rows {
  readonly table: WindowTable
  readonly epochs: WindowEpochs
  /** Deletes a row in the open epoch. */
  remove(place: SegmentTable, cell: number): void
}

/** Takes windows that start at `horizon` or before out of the segments that are wholly here, oldest first, about `most` of them. */
export function expireWindows(rows: Rows, horizon: number, most: number): void {
  const { table, epochs } = rows
  let left = most
  let dropped = false
  for (const segment of table.before(horizon)) {
    const whole = segment.newest <= horizon
    if (whole && epochs.isBorn(segment)) {
      epochs.dropBorn(segment)
      dropped = true
    } else {
      if (left <= 0) break
      const isAll = whole && segment.size <= left
      if (isAll) segment.forgetOrders()
      left -= expireSegment(rows, segment, horizon, left)
      if (segment.size === 0) {
        table.detach(segment)
        dropped = true
      } else if (isAll) segment.leavesWith = epochs.generation
    }
  }
  if (dropped) epochs.leaveDetached()
}

/** Gives the number of rows that are no longer there, or will not be once the open epoch is committed. */
function expireSegment(rows: Rows, segment: Segment, horizon: number, most: number): number {
  let count = 0
  let oldest = Number.POSITIVE_INFINITY
  for (const place of segment.places) {
    const common = place === segment.common ? segment.commonStart : undefined
    if (common !== undefined && common > horizon) {
      if (place.size > 0) oldest = common
      continue
    }
    const { used } = place.table
    for (let cell = 0; cell < used; cell++) {
      if (place.form(cell) < decoded) continue
      if (count === most) return count
      const start = common ?? windowStartOf(place.table.keyOf(cell))
      if (start > horizon) {
        if (start < oldest) oldest = start
        continue
      }
      if (!rows.epochs.dropBornRow(place, cell)) rows.remove(place, cell)
      count++
    }
  }
  segment.oldest = oldest
  return count
}
