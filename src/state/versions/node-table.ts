/** Nodes by their rows' key strings; they can also be walked in order. */
import { Node } from './node.ts'
import type { Row } from '../rows/row.ts'
import { SortedKeys } from '../rows/sorted-keys.ts'

export interface NodeTable {
  readonly size: number
  get(row: string): Node | undefined
  /** A node for a row that has none yet. */
  add(row: string, top: Row, born: number): Node
  /** Nothing happens where the node is not there. */
  remove(node: Node): void
  clear(): void
  all(): Iterable<Node>
  /** Key strings in [from, to), also while nodes come and go. The order is kept from the first call on. */
  rows(from: string | undefined, to: string | undefined, reverse?: boolean): IterableIterator<string>
}

export class PlainTable implements NodeTable {
  readonly #nodes = new Map<string, Node>()
  #order: SortedKeys | undefined

  get size(): number {
    return this.#nodes.size
  }

  get(row: string): Node | undefined {
    return this.#nodes.get(row)
  }

  add(row: string, top: Row, born: number): Node {
    const node = new Node(row, top, born)
    this.#order?.add(row)
    this.#nodes.set(row, node)
    return node
  }

  remove(node: Node): void {
    // Another node may have come in its place.
    if (this.#nodes.get(node.key) !== node) return
    this.#nodes.delete(node.key)
    this.#order?.delete(node.key)
  }

  clear(): void {
    this.#nodes.clear()
    this.#order = undefined
  }

  all(): Iterable<Node> {
    return this.#nodes.values()
  }

  rows(from: string | undefined, to: string | undefined, reverse = false): IterableIterator<string> {
    this.#order ??= new SortedKeys(this.#nodes.keys())
    return this.#order.range(from, to, reverse)
  }
}
