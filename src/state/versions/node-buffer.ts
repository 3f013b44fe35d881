/** Committed rows in front of a backend, in the table of nodes in which a store keeps its uncommitted ones. */
import { sortByKey } from '../backends/key-order.ts'
import type { WriteBuffer, HeldBatch } from '../backends/write-buffer.ts'
import type { Node } from './node.ts'
import type { NodeTable } from './node-table.ts'
import { committedGeneration, Row, type RowCodec } from '../rows/row.ts'

/** What a row takes beside its key and value: node, row, number, its place in the table. */
const overheadBytes = 280

export class NodeBuffer implements WriteBuffer {
  difference = 0
  readonly #codec: RowCodec
  readonly #table: NodeTable
  /** Nodes have left the table. */
  readonly #left: () => void
  /** Whether the backend has a row. Without it deletions are held whether or not they have anything to delete. */
  readonly #has: ((key: string) => boolean) | undefined
  /** Nodes whose committed row the backend does not have, but for those that are being written. */
  #held: Node[] = []
  #count = 0
  /** Bytes of a row's key and value, smoothed. */
  #rowBytes = 0
  /** Rows that the backend does not have, of which nobody knows whether it has an older one. */
  #unknown = 0

  constructor(
    codec: RowCodec,
    table: NodeTable,
    left: () => void = () => undefined,
    has: ((key: string) => boolean) | undefined = undefined,
  ) {
    this.#codec = codec
    this.#table = table
    this.#left = left
    this.#has = has
  }

  get unknown(): number {
    return this.#unknown
  }

  get heldBytes(): number {
    return Math.round(this.#count * (overheadBytes + this.#rowBytes))
  }

  get bufferBytes(): number {
    return this.heldBytes
  }

  committed(key: string): Uint8Array | null | undefined {
    const row = this.#table.get(key)?.at(committedGeneration)
    return row && this.#codec.toBackend(row)
  }

  keys(from: string | undefined, to: string | undefined, reverse: boolean): IterableIterator<string> {
    return this.#table.rows(from, to, reverse)
  }

  *held(): IterableIterator<readonly [string, Uint8Array | null]> {
    for (const node of this.#table.all()) {
      const row = node.at(committedGeneration)
      if (row !== undefined) yield [node.key, this.#codec.toBackend(row)]
    }
  }

  /** These nodes' rows of the generation are committed from now on. Gives those that they replace. */
  settle(nodes: readonly Node[], generation: number, replaced: (row: Row) => void): void {
    for (const node of nodes) {
      const row = node.at(generation) as Row
      const { below } = row
      row.generation = committedGeneration
      row.below = undefined
      this.#took(node, row, below)
      if (below !== undefined) replaced(below)
    }
  }

  hold(key: string, value: Uint8Array | null): void {
    let node = this.#table.get(key)
    if (node !== undefined && value === null) this.learn(node)
    else if (value === null && this.#has?.(key) === false) return
    const row = value === null ? Row.deletion() : this.#codec.fromBackend(value)
    if (node === undefined) {
      node = this.#table.add(key, row, 0)
      this.#took(node, row, undefined)
      return
    }
    const before = node.at(committedGeneration)
    const above = node.above(committedGeneration)
    if (above === undefined) node.top = row
    else above.below = row
    this.#took(node, row, before)
  }

  take(): HeldBatch {
    const nodes = this.#held
    const keys = nodes.map((node) => node.key)
    sortByKey(keys, nodes)
    this.#held = []
    return {
      count: nodes.length,
      key: (place) => keys[place] as string,
      value: (place) => this.#codec.toBackendTransient((nodes[place] as Node).at(committedGeneration) as Row),
      release: (from, to) => this.#release(nodes, from, to),
    }
  }

  compare(has: (key: string) => boolean): void {
    if (this.#unknown === 0) return
    for (const node of this.#table.all()) {
      if (node.isNew === undefined && node.at(committedGeneration) !== undefined) this.#know(node, !has(node.key))
    }
  }

  /** Asks the backend whether it has a row of the node's key, where nobody knows. */
  learn(node: Node): void {
    if (node.isNew === undefined && this.#has !== undefined) this.#know(node, !this.#has(node.key))
  }

  shrink(): void {
    return
  }

  clear(): void {
    this.#table.clear()
    this.#held = []
    this.#unknown = 0
    this.#count = 0
    this.difference = 0
    this.#left()
  }

  #release(nodes: readonly Node[], from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const node = nodes[i] as Node
      const row = node.at(committedGeneration) as Row
      this.#count--
      this.difference -= differenceOf(node, row)
      if (node.isNew === undefined) this.#unknown--
      node.isNew = row.isDeleted
      this.#letGo(node)
    }
    this.#left()
  }

  /** The node's committed row is this one now, which the backend does not have. */
  #took(node: Node, row: Row, before: Row | undefined): void {
    const isNothing = row.isDeleted && node.isNew === true
    if (before !== undefined) {
      this.difference += Number(before.isDeleted) - Number(row.isDeleted)
      // What is being written already stays until it is: a batch knows its nodes by their places.
      if (isNothing && this.#unhold(node)) this.#letGo(node)
      return
    }
    if (isNothing) {
      this.#letGo(node)
      return
    }
    node.heldAt = this.#held.push(node) - 1
    this.#count++
    if (node.isNew === undefined) this.#unknown++
    const bytes = node.key.length + (row.isDeleted ? 0 : 2 * this.#codec.weight(row))
    this.#rowBytes += (bytes - this.#rowBytes) / Math.min(this.#count, 64)
    this.difference += differenceOf(node, row)
  }

  /** The node's row is not to be written any more; false: it is not among those that wait for that. */
  #unhold(node: Node): boolean {
    const held = this.#held
    const at = node.heldAt
    if (at < 0 || held[at] !== node) return false
    const last = held.pop() as Node
    if (last !== node) {
      held[at] = last
      last.heldAt = at
    }
    this.#count--
    return true
  }

  /** The backend knows all that is committed of the node. It goes, as far as no uncommitted change needs it. */
  #letGo(node: Node): void {
    const above = node.above(committedGeneration)
    if (above === undefined) this.#table.remove(node)
    else above.below = undefined
  }

  #know(node: Node, isNew: boolean): void {
    const row = node.at(committedGeneration)
    if (row === undefined) {
      node.isNew = isNew
      return
    }
    this.#unknown--
    this.difference -= differenceOf(node, row)
    node.isNew = isNew
    this.difference += differenceOf(node, row)
  }
}

/** What the row adds to, or takes from, the number of rows in the backend. */
function differenceOf(node: Node, row: Row): number {
  return Number(!row.isDeleted) - Number(node.isNew !== true)
}
