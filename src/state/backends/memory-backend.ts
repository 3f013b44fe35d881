/**
 * Rows in memory: gone with the process, rebuilt from the changelog. The store above keeps its uncommitted rows beside the
 * committed ones, so that reading, changing and committing a row cost one look-up together.
 */
import { keyBytes, keyString } from '../rows/bytes.ts'
import type { ByteChange, ByteEntry, Checkpoint, StoreBackend, StoreBackendFactory } from '../contract.ts'
import { NodeRows } from '../versions/node-rows.ts'
import { PlainTable } from '../versions/node-table.ts'
import type { CommittedRows } from '../rows/committed-rows.ts'
import { bytesCodec } from '../rows/row.ts'

/** Rows from which the size of all is estimated. */
const sampledRows = 64

export class MemoryBackend implements StoreBackend {
  readonly durable = false
  #rows: CommittedRows = new NodeRows(bytesCodec, new PlainTable())
  #checkpoint: Checkpoint | undefined

  /** From now on rows lie here, in another form; bytes are made only for those who ask for bytes. */
  attach(rows: CommittedRows): void {
    for (const [key, value] of this.#rows.allBytes()) rows.commit(key, value)
    this.#rows = rows
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#rows.getBytes(keyString(key))
  }

  *range(from?: Uint8Array, to?: Uint8Array, reverse = false): IterableIterator<ByteEntry> {
    for (const [key, value] of this.#rows.rangeBytes(from && keyString(from), to && keyString(to), reverse)) {
      yield [keyBytes(key), value]
    }
  }

  apply(changes: Iterable<ByteChange>, checkpoint?: Checkpoint): void {
    for (const [key, value] of changes) this.#rows.commit(keyString(key), value)
    this.#checkpoint = checkpoint ?? this.#checkpoint
  }

  /** The store above has committed rows where they are. */
  advance(checkpoint: Checkpoint): void {
    this.#checkpoint = checkpoint
  }

  checkpoint(): Checkpoint | undefined {
    return this.#checkpoint
  }

  entries(): number {
    return this.#rows.size
  }

  bytes(): number {
    let bytes = 0
    let seen = 0
    for (const [key, value] of this.#rows.allBytes()) {
      bytes += key.length + value.length
      if (++seen === sampledRows) break
    }
    return seen === 0 ? 0 : Math.round((bytes / seen) * this.#rows.size)
  }

  wipe(): void {
    this.#rows.clear()
    this.#checkpoint = undefined
  }

  close(): void {
    this.wipe()
  }
}

/** Gone with the process, rebuilt from the changelog. */
export function memoryBackends(): StoreBackendFactory {
  return { open: () => new MemoryBackend(), together: (_, write) => write(), close: () => undefined }
}
