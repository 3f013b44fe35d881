/**
 * Cells in the order of their keys. Comparing strings is most of what closing a window would cost, so numbers made of a few
 * bytes of each key are sorted, and only keys that agree in them are compared.
 */
import type { CellTable } from '../table/cell-table.ts'

/** Positions take the lower bits of a number, bytes the upper ones: together 53 at most. */
const [manyPositions, fewBytes] = [2 ** 21, 4]
const [fewPositions, manyBytes] = [2 ** 13, 5]

/** Gives these cells of the table in the order of their keys. */
export function sortedCells(table: CellTable, cells: readonly number[]): number[] {
  if (cells.length > manyPositions) return [...cells].sort((a, b) => compare(table.keyOf(a), table.keyOf(b)))
  const first = cells[0]
  if (first === undefined) return []
  let at = table.keyLength(first)
  for (const cell of cells) at = table.shared(first, cell, at)
  const isFew = cells.length <= fewPositions
  const positions = isFew ? fewPositions : manyPositions
  const bytes = isFew ? manyBytes : fewBytes
  const numbers = new Float64Array(cells.length)
  for (let i = 0; i < cells.length; i++) numbers[i] = table.numberAt(cells[i] as number, at, bytes) * positions + i
  numbers.sort()
  const sorted: number[] = []
  let start = 0
  let last = -1
  for (let i = 0; i < numbers.length; i++) {
    const number = numbers[i] as number
    const prefix = Math.floor(number / positions)
    sorted.push(cells[number - prefix * positions] as number)
    if (prefix === last) continue
    if (i - start > 1) sortRun(table, sorted, start, i)
    start = i
    last = prefix
  }
  if (numbers.length - start > 1) sortRun(table, sorted, start, numbers.length)
  return sorted
}

function sortRun(table: CellTable, cells: number[], from: number, to: number): void {
  const run = cells.slice(from, to).map((cell) => ({ cell, key: table.keyOf(cell) }))
  run.sort((a, b) => compare(a.key, b.key))
  run.forEach(({ cell }, i) => {
    cells[from + i] = cell
  })
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
