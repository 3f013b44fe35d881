/** The committed rows of a table of nodes, as bytes. */
import type { CommittedRows } from '../rows/committed-rows.ts'
import type { NodeTable } from './node-table.ts'
import { committedGeneration, type RowCodec } from '../rows/row.ts'

export class NodeRows implements CommittedRows {
  readonly #codec: RowCodec
  readonly #nodes: NodeTable

  constructor(codec: RowCodec, nodes: NodeTable) {
    this.#codec = codec
    this.#nodes = nodes
  }

  get size(): number {
    return this.#nodes.size
  }

  getBytes(key: string): Uint8Array | undefined {
    const row = this.#nodes.get(key)?.at(committedGeneration)
    return (row && this.#codec.toBackend(row)) ?? undefined
  }

  *rangeBytes(
    from: string | undefined,
    to: string | undefined,
    reverse: boolean,
  ): IterableIterator<readonly [string, Uint8Array]> {
    for (const key of this.#nodes.rows(from, to, reverse)) {
      const value = this.getBytes(key)
      if (value !== undefined) yield [key, value]
    }
  }

  *allBytes(): IterableIterator<readonly [string, Uint8Array]> {
    for (const node of this.#nodes.all()) {
      const row = node.at(committedGeneration)
      const value = row && this.#codec.toBackend(row)
      if (value) yield [node.key, value]
    }
  }

  commit(key: string, value: Uint8Array | null): void {
    const row = value === null ? undefined : this.#codec.fromBackend(value)
    const node = this.#nodes.get(key)
    const above = node?.above(committedGeneration)
    if (above !== undefined) {
      above.below = row
    } else if (row === undefined) {
      if (node !== undefined) this.#nodes.remove(node)
    } else if (node !== undefined) {
      node.top = row
    } else {
      // A walk that is under way finds it: it was there before the store above counted what came.
      this.#nodes.add(key, row, 0)
    }
  }

  clear(): void {
    this.#nodes.clear()
  }
}
