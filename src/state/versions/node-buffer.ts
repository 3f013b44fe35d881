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
  /** Nodes whose committed row the backend does not have, but for those that are being written. */
  #held: Node[] = []
  #count = 0
  /** Bytes of a row's key and value, smoothed. */
  #rowBytes = 0
  /** Nodes of which nobody knows whether the backend has a row. */
  #unknown: Node[] = []

  constructor(codec: RowCodec, table: NodeTable, left: () => void = () => undefined) {
    this.#codec = codec
    this.#table = table
    this.#left = left
  }

  get unknown(): number {
    return this.#unknown.length
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
    const row = value === null ? Row.deletion() : this.#codec.fromBackend(value)
    let node = this.#table.get(key)
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
    for (const node of this.#unknown) {
      const row = node.at(committedGeneration)
      const key = node.key
      if (row === undefined || node.isNew !== undefined || this.#table.get(key) !== node) continue
      this.difference -= differenceOf(node, row)
      node.isNew = !has(key)
      this.difference += differenceOf(node, row)
    }
    this.#unknown = []
  }

  shrink(): void {
    return
  }

  clear(): void {
    this.#table.clear()
    this.#held = []
    this.#unknown = []
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
      node.isNew = row.isDeleted
      const above = node.above(committedGeneration)
      if (above === undefined) this.#table.remove(node)
      else above.below = undefined
    }
    if (this.#unknown.length > 0) this.#unknown = this.#unknown.filter((node) => node.isNew === undefined)
    this.#left()
  }

  /** The node's committed row is this one now, which the backend does not have. */
  #took(node: Node, row: Row, before: Row | undefined): void {
    if (before !== undefined) {
      this.difference += Number(before.isDeleted) - Number(row.isDeleted)
      return
    }
    this.#held.push(node)
    this.#count++
    if (node.isNew === undefined) this.#unknown.push(node)
    const bytes = node.key.length + (row.isDeleted ? 0 : 2 * this.#codec.weight(row))
    this.#rowBytes += (bytes - this.#rowBytes) / Math.min(this.#count, 64)
    this.difference += differenceOf(node, row)
  }
}

/** What the row adds to, or takes from, the number of rows in the backend. */
function differenceOf(node: Node, row: Row): number {
  return Number(!row.isDeleted) - Number(node.isNew !== true)
}
