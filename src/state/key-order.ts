/**
 * Puts items into the order of their key strings, right but for runs of a few: rows that lie side by side on a page are
 * to be written one after the other. A comparison of strings costs more than the place of a row on its page is worth,
 * so numbers made of a few characters are sorted instead.
 */

/** Runs of keys that agree so far and are no longer than this stay as they are. */
const shortRun = 16
/** Positions take the lower bits of a number, four characters the upper ones: together 53. */
const positions = 2 ** 21

/** `keys` and `items` belong together by their places, before and after. */
export function sortByKey<T>(keys: string[], items: T[]): void {
  for (let from = 0; from < keys.length; from += positions) {
    sort(keys, items, from, Math.min(keys.length, from + positions), 0)
  }
}

/** Sorts the places from `from` to `to`, whose keys agree in their first `depth` characters. */
function sort<T>(keys: string[], items: T[], from: number, to: number, depth: number): void {
  const at = depth + common(keys, from, to, depth)
  const numbers = new Float64Array(to - from)
  for (let i = from; i < to; i++) numbers[i - from] = fourAt(keys[i] as string, at) * positions + (i - from)
  numbers.sort()
  permute(keys, from, numbers)
  permute(items, from, numbers)
  let start = 0
  for (let i = 1; i <= numbers.length; i++) {
    if (i < numbers.length && prefixOf(numbers[i] as number) === prefixOf(numbers[start] as number)) continue
    const [low, high] = [from + start, from + i]
    if (i - start > shortRun && someLonger(keys, low, high, at + 4)) sort(keys, items, low, high, at + 4)
    start = i
  }
}

function permute<T>(list: T[], from: number, numbers: Float64Array): void {
  const before = list.slice(from, from + numbers.length)
  for (let i = 0; i < numbers.length; i++) list[from + i] = before[(numbers[i] as number) % positions] as T
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
function someLonger(keys: readonly string[], from: number, to: number, length: number): boolean {
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
