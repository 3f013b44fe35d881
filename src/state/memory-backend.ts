/** Rows in memory: gone with the process, rebuilt from the changelog. */
import { keyBytes, keyString } from './bytes.ts'
import type { ByteChange, ByteEntry, Checkpoint, StoreBackend } from './contract.ts'
import { Keyed } from './keyed.ts'
import { type Row, RowCodec } from './row.ts'

const asBytes = new RowCodec('plain', {
  name: 'bytes',
  serialize: (value) => value as Uint8Array,
  deserialize: (bytes) => bytes,
})

export class MemoryBackend implements StoreBackend {
  readonly durable = false
  readonly rows = new Keyed<Row>()
  #codec = asBytes
  #checkpoint: Checkpoint | undefined

  /** From now on rows may be put in and taken out as such; bytes are made only for those who ask for bytes. */
  attach(codec: RowCodec): void {
    for (const [key, row] of this.rows.map) this.rows.map.set(key, codec.fromBackend(this.#codec.toBackend(row)))
    this.#codec = codec
  }

  get(key: Uint8Array): Uint8Array | undefined {
    const row = this.rows.get(keyString(key))
    return row && this.#codec.toBackend(row)
  }

  *range(from?: Uint8Array, to?: Uint8Array, reverse = false): IterableIterator<ByteEntry> {
    for (const key of this.rows.keys(from && keyString(from), to && keyString(to), reverse)) {
      yield [keyBytes(key), this.#codec.toBackend(this.rows.get(key) as Row)]
    }
  }

  apply(changes: Iterable<ByteChange>, checkpoint: Checkpoint): void {
    for (const [key, value] of changes) {
      if (value === null) this.rows.delete(keyString(key))
      else this.rows.set(keyString(key), this.#codec.fromBackend(value))
    }
    this.#checkpoint = checkpoint
  }

  /** As `apply`, of rows that the caller gives away. A null row is a deletion. */
  applyRows(changes: ReadonlyMap<string, Row | null>, dropped: readonly string[], checkpoint: Checkpoint): void {
    for (const [key, row] of changes) {
      if (row === null) this.rows.delete(key)
      else this.rows.set(key, row)
    }
    for (const key of dropped) this.rows.delete(key)
    this.#checkpoint = checkpoint
  }

  checkpoint(): Checkpoint | undefined {
    return this.#checkpoint
  }

  entries(): number {
    return this.rows.size
  }

  wipe(): void {
    this.rows.clear()
    this.#checkpoint = undefined
  }

  close(): void {
    this.wipe()
  }
}
