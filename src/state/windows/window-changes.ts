/** The windows that the open epoch has changed, out of their columns, segment by segment. */
import { windowStartOf } from '../rows/layout.ts'
import { RowChanges } from '../rows/row-changes.ts'
import type { Row, RowCodec } from '../rows/row.ts'
import { absent } from '../table/cell-record.ts'
import type { UndoLog } from '../table/undo-log.ts'
import { unpublished, type SegmentTable } from './segment-table.ts'
import type { WindowGeneration } from './window-sealed.ts'

interface Changed {
  readonly place: SegmentTable
  readonly log: UndoLog
  readonly count: number
}

/** `below`: the row that only the backend may have. */
export function windowChanges(
  codec: RowCodec,
  { generation, places }: Pick<WindowGeneration, 'generation' | 'places'>,
  below: (start: number, row: string) => Row | undefined,
): RowChanges {
  const open = places.map((place): Changed => {
    const log = place.logOf(generation)
    return { place, log, count: log.count }
  })
  const count = open.reduce((sum, changed) => sum + changed.count, 0)
  let next = 0
  let first = 0
  return new RowChanges(count, (at, into) => {
    while (at - first >= (open[next] as Changed).count) first += (open[next++] as Changed).count
    const { place, log } = open[next] as Changed
    const was = log.form(at - first)
    if (was === unpublished) return false
    into.key = place.rowOf(log.cell(at - first))
    place.showChange(log, at - first, codec, into)
    if (was === absent) into.showBefore(below(windowStartOf(into.key), into.key))
    return true
  })
}
