/**
 * Slots in the order of their keys. Comparing strings is most of what closing a window would cost, so numbers made of a few
 * bytes of each key are sorted, and only keys that agree in them are compared.
 */
import type { SlotTable } from './slot-table.ts'

/** Positions take the lower bits of a number, bytes the upper ones: together 53 at most. */
const [manyPositions, fewBytes] = [2 ** 21, 4]
const [fewPositions, manyBytes] = [2 ** 13, 5]

/** Gives these slots of the table in the order of their keys. */
export function sortedSlots(table: SlotTable, slots: readonly number[]): number[] {
  if (slots.length > manyPositions) return [...slots].sort((a, b) => compare(table.keyOf(a), table.keyOf(b)))
  const first = slots[0]
  if (first === undefined) return []
  let at = table.keyLength(first)
  for (const slot of slots) at = table.shared(first, slot, at)
  const isFew = slots.length <= fewPositions
  const positions = isFew ? fewPositions : manyPositions
  const bytes = isFew ? manyBytes : fewBytes
  const numbers = new Float64Array(slots.length)
  for (let i = 0; i < slots.length; i++) numbers[i] = table.numberAt(slots[i] as number, at, bytes) * positions + i
  numbers.sort()
  const sorted: number[] = []
  let start = 0
  let last = -1
  for (let i = 0; i < numbers.length; i++) {
    const number = numbers[i] as number
    const prefix = Math.floor(number / positions)
    sorted.push(slots[number - prefix * positions] as number)
    if (prefix === last) continue
    if (i - start > 1) sortRun(table, sorted, start, i)
    start = i
    last = prefix
  }
  if (numbers.length - start > 1) sortRun(table, sorted, start, numbers.length)
  return sorted
}

function sortRun(table: SlotTable, slots: number[], from: number, to: number): void {
  const run = slots.slice(from, to).map((slot) => ({ slot, key: table.keyOf(slot) }))
  run.sort((a, b) => compare(a.key, b.key))
  run.forEach(({ slot }, i) => {
    slots[from + i] = slot
  })
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
