/**
 * Puts rows into the order of their keys, right but for runs of a few: rows that lie side by side on a page are to be
 * written one after the other. A comparison of keys costs more than the place of a row on its page is worth, so numbers
 * made of a few bytes are sorted instead.
 */

/** Runs of keys that agree so far and are no longer than this stay as they are. */
const shortRun = 16
/** Positions take the lower bits of a number, four bytes of a key the upper ones: together 53. */
const positions = 2 ** 21
const digitBits = 11
const digitMask = 2 ** digitBits - 1

/** The keys of numbered rows. */
export interface KeyBytes {
  lengthOf(row: number): number
  byteAt(row: number, at: number): number
  /** Four bytes as a number; one that is missing counts as the least. */
  fourAt(row: number, at: number): number
}

/** Puts the rows of the list into the order of their keys. */
export function orderByKey(rows: Int32Array, keys: KeyBytes): void {
  for (let from = 0; from < rows.length; from += positions) {
    sort(rows, keys, from, Math.min(rows.length, from + positions), 0)
  }
}

/** Puts the rows of the list into the order of their hashes, taken as unsigned numbers, and gives those. */
export function orderByHash(rows: Int32Array<ArrayBuffer>, hashOf: (row: number) => number): Uint32Array {
  let hashes = new Uint32Array(rows.length)
  for (let i = 0; i < rows.length; i++) hashes[i] = hashOf(rows[i] as number)
  let [next, moved] = [new Uint32Array(rows.length), new Int32Array(rows.length)]
  let from = rows
  // By eleven bits at a time, the lowest first: a hash is a number like any other, and needs no comparisons.
  for (let shift = 0; shift < 32; shift += digitBits) {
    const starts = new Int32Array(2 ** digitBits + 1)
    for (let i = 0; i < hashes.length; i++) {
      const digit = ((hashes[i] as number) >>> shift) & digitMask
      starts[digit + 1] = (starts[digit + 1] as number) + 1
    }
    for (let digit = 1; digit < starts.length; digit++)
      starts[digit] = (starts[digit] as number) + (starts[digit - 1] as number)
    for (let i = 0; i < hashes.length; i++) {
      const hash = hashes[i] as number
      const digit = (hash >>> shift) & digitMask
      const to = starts[digit] as number
      starts[digit] = to + 1
      next[to] = hash
      moved[to] = from[i] as number
    }
    ;[hashes, next] = [next, hashes]
    ;[from, moved] = [moved, from]
  }
  if (from !== rows) rows.set(from)
  return hashes
}

/** `keys` and `items` belong together by their places, before and after. */
export function sortByKey<T>(keys: string[], items: T[]): void {
  const places = placesByKey(keys)
  const [oldKeys, oldItems] = [keys.slice(), items.slice()]
  for (let i = 0; i < places.length; i++) {
    keys[i] = oldKeys[places[i] as number] as string
    items[i] = oldItems[places[i] as number] as T
  }
}

/** The places of the keys, in the order of the keys. */
function placesByKey(keys: readonly string[]): Int32Array {
  const places = new Int32Array(keys.length)
  for (let i = 0; i < places.length; i++) places[i] = i
  orderByKey(places, new KeyStrings(keys))
  return places
}

class KeyStrings implements KeyBytes {
  readonly #keys: readonly string[]

  constructor(keys: readonly string[]) {
    this.#keys = keys
  }

  lengthOf(row: number): number {
    return (this.#keys[row] as string).length
  }

  byteAt(row: number, at: number): number {
    return (this.#keys[row] as string).charCodeAt(at)
  }

  fourAt(row: number, at: number): number {
    const key = this.#keys[row] as string
    const { length } = key
    let number = 0
    for (let i = at; i < at + 4; i++) number = number * 256 + (i < length ? key.charCodeAt(i) : 0)
    return number
  }
}

/** Sorts the places from `from` to `to`, whose keys agree in their first `depth` bytes. */
function sort(rows: Int32Array, keys: KeyBytes, from: number, to: number, depth: number): void {
  const at = depth + common(rows, keys, from, to, depth)
  const numbers = new Float64Array(to - from)
  for (let i = from; i < to; i++) numbers[i - from] = keys.fourAt(rows[i] as number, at) * positions + (i - from)
  numbers.sort()
  const before = rows.slice(from, to)
  let start = 0
  let prefix = -1
  for (let i = 0; i <= numbers.length; i++) {
    let next = -2
    if (i < numbers.length) {
      const number = numbers[i] as number
      next = Math.floor(number / positions)
      rows[from + i] = before[number - next * positions] as number
    }
    if (next === prefix) continue
    const [low, high] = [from + start, from + i]
    if (i - start > shortRun && someLonger(rows, keys, low, high, at + 4)) sort(rows, keys, low, high, at + 4)
    start = i
    prefix = next
  }
}

/** How many bytes all of them share from `depth` on. */
function common(rows: Int32Array, keys: KeyBytes, from: number, to: number, depth: number): number {
  const first = rows[from] as number
  let shared = keys.lengthOf(first) - depth
  for (let i = from + 1; i < to && shared > 0; i++) {
    const row = rows[i] as number
    const most = Math.min(shared, keys.lengthOf(row) - depth)
    let n = 0
    while (n < most && keys.byteAt(row, depth + n) === keys.byteAt(first, depth + n)) n++
    shared = n
  }
  return Math.max(0, shared)
}

/** Some key goes on from here: else all that agree so far are one. */
function someLonger(rows: Int32Array, keys: KeyBytes, from: number, to: number, length: number): boolean {
  for (let i = from; i < to; i++) if (keys.lengthOf(rows[i] as number) > length) return true
  return false
}
