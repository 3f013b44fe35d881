/** Every standstill there is a finding for. Of several causes the one that stands first is told first. */
import type { StandstillRow } from './row.ts'
import { aroundRows } from './rows/around.ts'
import { slowCommitRows, unansweredRows } from './rows/commits.ts'
import { failureRows, lateRows } from './rows/failed.ts'
import { effectRows, inputRows } from './rows/input.ts'
import { fencedRows, groupRows } from './rows/group.ts'
import { laneRows } from './rows/lanes.ts'
import { orderRows } from './rows/order.ts'
import { orderedRows } from './rows/ordered.ts'
import { refusedRows } from './rows/refused.ts'

export const standstillTable: readonly StandstillRow[] = [
  ...failureRows,
  ...fencedRows,
  ...laneRows,
  ...aroundRows,
  ...unansweredRows,
  ...inputRows,
  ...orderRows,
  ...groupRows,
  ...slowCommitRows,
  ...lateRows,
  ...orderedRows,
  ...effectRows,
  ...refusedRows,
]

/** Where the guide explains a code. */
export function helpOf(code: string): string {
  return `docs/guide/standstills.md#${code.toLowerCase().replaceAll('_', '-')}`
}
