/** The committed rows of a store, whatever backend they lie in. */
import { keyBytes, keyString } from './bytes.ts'
import type { ByteChange, Checkpoint, StoreBackend } from './contract.ts'
import { MemoryBackend } from './memory-backend.ts'
import type { Row, RowCodec } from './row.ts'

export interface CommittedRows {
  get(key: string): Row | undefined
  /** Keys in [from, to); each step continues behind the last key, so changes in between do no harm. */
  range(from: string | undefined, to: string | undefined, reverse: boolean): IterableIterator<[string, Row]>
  /** Changes, then removals that the changelog need not hear of, and the checkpoint: all or nothing. */
  apply(changes: ReadonlyMap<string, Row | null>, dropped: readonly string[], checkpoint: Checkpoint): void
}

export function committedRows(backend: StoreBackend, codec: RowCodec): CommittedRows {
  if (backend instanceof MemoryBackend) {
    backend.attach(codec)
    return new MemoryRows(backend)
  }
  return new ByteRows(backend, codec)
}

class MemoryRows implements CommittedRows {
  readonly #backend: MemoryBackend

  constructor(backend: MemoryBackend) {
    this.#backend = backend
  }

  get(key: string): Row | undefined {
    return this.#backend.rows.map.get(key)
  }

  *range(from: string | undefined, to: string | undefined, reverse: boolean): IterableIterator<[string, Row]> {
    const rows = this.#backend.rows
    for (const key of rows.keys(from, to, reverse)) yield [key, rows.get(key) as Row]
  }

  apply(changes: ReadonlyMap<string, Row | null>, dropped: readonly string[], checkpoint: Checkpoint): void {
    this.#backend.applyRows(changes, dropped, checkpoint)
  }
}

class ByteRows implements CommittedRows {
  readonly #backend: StoreBackend
  readonly #codec: RowCodec

  constructor(backend: StoreBackend, codec: RowCodec) {
    this.#backend = backend
    this.#codec = codec
  }

  get(key: string): Row | undefined {
    const bytes = this.#backend.get(keyBytes(key))
    return bytes && this.#codec.fromBackend(bytes)
  }

  *range(from: string | undefined, to: string | undefined, reverse: boolean): IterableIterator<[string, Row]> {
    const [low, high] = [from === undefined ? from : keyBytes(from), to === undefined ? to : keyBytes(to)]
    for (const [key, value] of this.#backend.range(low, high, reverse)) {
      yield [keyString(key), this.#codec.fromBackend(value)]
    }
  }

  apply(changes: ReadonlyMap<string, Row | null>, dropped: readonly string[], checkpoint: Checkpoint): void {
    this.#backend.apply(this.#inBytes(changes, dropped), checkpoint)
  }

  *#inBytes(changes: ReadonlyMap<string, Row | null>, dropped: readonly string[]): IterableIterator<ByteChange> {
    for (const [key, row] of changes) yield [keyBytes(key), row && this.#codec.toBackend(row)]
    for (const key of dropped) yield [keyBytes(key), null]
  }
}
