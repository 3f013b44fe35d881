/**
 * Slots in the order of their keys. Comparing strings is most of what closing a window would cost, so numbers made of four
 * bytes of each key are sorted, and only keys that agree in them are compared.
 */
import type { SlotTable } from './slot-table.ts'

/** Positions take the lower bits of a number, four bytes the upper ones: together 53. */
const positions = 2 ** 21

/** Gives these slots of the table in the order of their keys. */
export function sortedSlots(table: SlotTable, slots: readonly number[]): number[] {
  if (slots.length > positions) return [...slots].sort((a, b) => compare(table.keyOf(a), table.keyOf(b)))
  const first = slots[0]
  if (first === undefined) return []
  let at = table.keyLength(first)
  for (const slot of slots) at = table.shared(first, slot, at)
  const numbers = new Float64Array(slots.length)
  for (let i = 0; i < slots.length; i++) numbers[i] = table.fourAt(slots[i] as number, at) * positions + i
  numbers.sort()
  const sorted: number[] = []
  for (let i = 0; i < numbers.length; i++) sorted.push(slots[(numbers[i] as number) % positions] as number)
  let start = 0
  for (let i = 1; i <= numbers.length; i++) {
    if (i < numbers.length && prefixOf(numbers[i] as number) === prefixOf(numbers[start] as number)) continue
    if (i - start > 1) sortRun(table, sorted, start, i)
    start = i
  }
  return sorted
}

const prefixOf = (number: number): number => Math.floor(number / positions)

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
