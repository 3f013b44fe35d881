/** A map by key string that can also be read in order; the order is kept from the first ordered read on. */
import { SortedKeys } from './sorted-keys.ts'

export class Keyed<T> {
  readonly map = new Map<string, T>()
  #order: SortedKeys | undefined

  constructor(ordered = false) {
    if (ordered) this.#order = new SortedKeys()
  }

  get size(): number {
    return this.map.size
  }

  get ordered(): boolean {
    return this.#order !== undefined
  }

  get(key: string): T | undefined {
    return this.map.get(key)
  }

  set(key: string, cell: T): void {
    if (this.#order !== undefined && !this.map.has(key)) this.#order.add(key)
    this.map.set(key, cell)
  }

  delete(key: string): void {
    if (this.map.delete(key)) this.#order?.delete(key)
  }

  clear(): void {
    this.map.clear()
    if (this.#order !== undefined) this.#order = new SortedKeys()
  }

  keys(from: string | undefined, to: string | undefined, reverse = false): IterableIterator<string> {
    this.#order ??= new SortedKeys(this.map.keys())
    return this.#order.range(from, to, reverse)
  }
}
