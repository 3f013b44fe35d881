/** A list kept in order by binary insertion: small, mostly appended to, taken from the front. */
export class SortedList<T> {
  readonly #compare: (a: T, b: T) => number
  readonly #items: T[] = []

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare
  }

  get size(): number {
    return this.#items.length
  }

  get first(): T | undefined {
    return this.#items[0]
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.#items[Symbol.iterator]()
  }

  add(item: T): void {
    this.#items.splice(this.#search(item), 0, item)
  }

  /** Replaces or removes the item that compares as equal. */
  replace(item: T): void {
    const at = this.#search(item)
    const found = this.#items[at]
    if (found !== undefined && this.#compare(found, item) === 0) this.#items[at] = item
    else this.#items.splice(at, 0, item)
  }

  remove(item: T): void {
    const at = this.#search(item)
    const found = this.#items[at]
    if (found !== undefined && this.#compare(found, item) === 0) this.#items.splice(at, 1)
  }

  /** Takes items from the front while the test holds. */
  takeWhile(test: (item: T) => boolean): T[] {
    let count = 0
    while (count < this.#items.length && test(this.#items[count] as T)) count++
    return this.#items.splice(0, count)
  }

  #search(item: T): number {
    let low = 0
    let high = this.#items.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#compare(this.#items[middle] as T, item) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

export const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const latin1Slice = Buffer.prototype.latin1Slice

/** Bytes as a string of equal order, to be the key of a map: one code unit a byte. */
export function bytesText(bytes: Uint8Array): string {
  return latin1Slice.call(bytes, 0, bytes.length)
}
