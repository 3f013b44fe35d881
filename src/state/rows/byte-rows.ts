/** The committed rows in a backend that knows bytes alone. */
import { keyBytes, keyString } from './bytes.ts'
import type { ByteChange, Checkpoint, StoreBackend } from '../contract.ts'
import type { Generation } from '../versions/node.ts'
import type { Row, RowCodec } from './row.ts'

export class ByteRows {
  readonly #backend: StoreBackend
  readonly #codec: RowCodec

  constructor(backend: StoreBackend, codec: RowCodec) {
    this.#backend = backend
    this.#codec = codec
  }

  get(key: string): Row | undefined {
    const bytes = this.#backend.getAt ? this.#backend.getAt(key) : this.#backend.get(keyBytes(key))
    return bytes && this.#codec.fromBackend(bytes)
  }

  /** Keys in [from, to); each step continues behind the last key, so changes in between do no harm. */
  *range(from: string | undefined, to: string | undefined, reverse: boolean): IterableIterator<[string, Row]> {
    const [low, high] = [from === undefined ? from : keyBytes(from), to === undefined ? to : keyBytes(to)]
    for (const [key, value] of this.#backend.range(low, high, reverse)) {
      yield [keyString(key), this.#codec.fromBackend(value)]
    }
  }

  /** A generation's rows, removals that the changelog need not hear of, and the checkpoint: all or nothing. */
  apply(sealed: Generation | undefined, dropped: readonly string[], checkpoint: Checkpoint): void {
    this.#backend.apply(this.#inBytes(sealed, dropped), checkpoint)
  }

  *#inBytes(sealed: Generation | undefined, dropped: readonly string[]): IterableIterator<ByteChange> {
    if (sealed !== undefined) {
      for (const node of sealed.nodes) {
        yield [keyBytes(node.key), this.#codec.toBackend(node.at(sealed.generation) as Row)]
      }
    }
    for (const key of dropped) yield [keyBytes(key), null]
  }
}
