/**
 * Key strings in an order that is right but for runs of a few: rows that lie side by side on a page are to be written
 * one after the other. A comparison of strings costs more than the place of a row on its page is worth, so numbers made
 * of a few characters are sorted instead.
 */

/** Runs of keys that agree so far and are no longer than this stay as they are. */
const shortRun = 16
/** Positions take the lower bits of a number, four characters the upper ones: together 53. */
const positions = 2 ** 21

export function inKeyOrder(keys: readonly string[]): string[] {
  const sorted = keys.slice()
  for (let from = 0; from < sorted.length; from += positions)
    sort(sorted, from, Math.min(sorted.length, from + positions), 0)
  return sorted
}

/** Sorts keys[from, to), which agree in their first `depth` characters. */
function sort(keys: string[], from: number, to: number, depth: number): void {
  const at = depth + common(keys, from, to, depth)
  const numbers = new Float64Array(to - from)
  for (let i = from; i < to; i++) numbers[i - from] = fourAt(keys[i] as string, at) * positions + (i - from)
  numbers.sort()
  const before = keys.slice(from, to)
  for (let i = 0; i < numbers.length; i++) keys[from + i] = before[(numbers[i] as number) % positions] as string
  let start = 0
  for (let i = 1; i <= numbers.length; i++) {
    if (i < numbers.length && prefixOf(numbers[i] as number) === prefixOf(numbers[start] as number)) continue
    if (i - start > shortRun && longer(keys, from + start, from + i, at + 4)) sort(keys, from + start, from + i, at + 4)
    start = i
  }
}

const prefixOf = (number: number): number => Math.floor(number / positions)

/** How many characters all of them share from `depth` on. */
function common(keys: readonly string[], from: number, to: number, depth: number): number {
  const first = keys[from] as string
  let shared = first.length - depth
  for (let i = from + 1; i < to && shared > 0; i++) {
    const key = keys[i] as string
    let n = 0
    while (n < shared && key.charCodeAt(depth + n) === first.charCodeAt(depth + n)) n++
    shared = n
  }
  return Math.max(0, shared)
}

/** Some key goes on from here: else all that agree so far are one. */
function longer(keys: readonly string[], from: number, to: number, length: number): boolean {
  for (let i = from; i < to; i++) if ((keys[i] as string).length > length) return true
  return false
}

/** Four characters as a number; one that is missing counts as the least. */
function fourAt(key: string, at: number): number {
  const { length } = key
  let number = 0
  for (let i = at; i < at + 4; i++) number = number * 256 + (i < length ? key.charCodeAt(i) : 0)
  return number
}
