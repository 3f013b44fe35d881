/**
 * Rows in memory: gone with the process, rebuilt from the changelog. The store above keeps its uncommitted rows in the
 * same nodes, so that reading, changing and committing a row cost one look-up together.
 */
import { keyBytes, keyString } from './bytes.ts'
import type { ByteChange, ByteEntry, Checkpoint, StoreBackend } from './contract.ts'
import { type NodeTable, PlainTable } from './node-table.ts'
import { bytesCodec, committedGeneration, type Row, type RowCodec } from './row.ts'

/** Rows from which the size of all is estimated. */
const sampledRows = 64

export class MemoryBackend implements StoreBackend {
  readonly durable = false
  #nodes: NodeTable = new PlainTable()
  #codec = bytesCodec
  #checkpoint: Checkpoint | undefined

  /** From now on rows have the form of this codec and lie in this table; bytes are made only for those who ask for bytes. */
  attach(codec: RowCodec, table: NodeTable): void {
    for (const node of this.#nodes.all()) {
      const bytes = this.#codec.toBackend(node.top)
      // The store that now opens counts anew which rows came during a walk: what it finds was there before all of them.
      if (bytes !== null) table.add(this.#nodes.rowOf(node), codec.fromBackend(bytes), 0)
    }
    this.#nodes = table
    this.#codec = codec
  }

  get(key: Uint8Array): Uint8Array | undefined {
    const row = this.#nodes.get(keyString(key))?.at(committedGeneration)
    return (row && this.#codec.toBackend(row)) ?? undefined
  }

  *range(from?: Uint8Array, to?: Uint8Array, reverse = false): IterableIterator<ByteEntry> {
    for (const key of this.#nodes.rows(from && keyString(from), to && keyString(to), reverse)) {
      const row = this.#nodes.get(key)?.at(committedGeneration)
      const value = row && this.#codec.toBackend(row)
      if (value) yield [keyBytes(key), value]
    }
  }

  apply(changes: Iterable<ByteChange>, checkpoint?: Checkpoint): void {
    for (const [key, value] of changes) this.#commit(keyString(key), value && this.#codec.fromBackend(value))
    this.#checkpoint = checkpoint ?? this.#checkpoint
  }

  /** The store above has committed rows in the nodes themselves. */
  advance(checkpoint: Checkpoint): void {
    this.#checkpoint = checkpoint
  }

  checkpoint(): Checkpoint | undefined {
    return this.#checkpoint
  }

  entries(): number {
    return this.#nodes.size
  }

  bytes(): number {
    let bytes = 0
    let seen = 0
    for (const node of this.#nodes.all()) {
      bytes += this.#nodes.rowOf(node).length + (this.#codec.toBackend(node.top)?.length ?? 0)
      if (++seen === sampledRows) break
    }
    return seen === 0 ? 0 : Math.round((bytes / seen) * this.#nodes.size)
  }

  wipe(): void {
    this.#nodes.clear()
    this.#checkpoint = undefined
  }

  close(): void {
    this.wipe()
  }

  #commit(key: string, row: Row | null): void {
    const node = this.#nodes.get(key)
    const above = node?.above(committedGeneration)
    if (above !== undefined) {
      above.below = row ?? undefined
    } else if (row === null) {
      if (node !== undefined) this.#nodes.remove(node)
    } else if (node !== undefined) {
      node.top = row
    } else {
      this.#nodes.add(key, row, 0)
    }
  }
}
