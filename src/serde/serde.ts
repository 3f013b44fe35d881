/**
 * Turns keys or values into bytes and back. Implement it for a format of your own.
 * Null never reaches a serde: a null key or value is a null on the wire.
 */
export interface Serde<T> {
  /** Shown in errors and in `/topology/compiled`. */
  readonly name: string
  serialize(value: T): Uint8Array
  /** Optional: as `serialize`, into bytes that are valid until the next such call only: for those who copy them at once. */
  serializeBriefly?(value: T): Uint8Array
  /** May throw: the record then goes to the decoding error handler. `bytes` must not be kept or changed. */
  deserialize(bytes: Uint8Array): T
  /**
   * Optional: as `deserialize`, from what lies in `bytes` between `start` and `end`; the rest is other records'. It spares
   * every record a view of its bytes.
   */
  deserializeFrom?(bytes: Uint8Array, start: number, end: number): T
  /**
   * Optional: true for a primitive that `serialize` is certain to accept and that survives the way to bytes and back
   * unchanged. A store then keeps the value as it is and serialises it once a commit instead of at every write.
   */
  isPlain?(value: T): boolean
  /** Optional: writes a value for which `isPlain` is true, and which takes `size` bytes, into bytes that are there already, from `at` on. */
  readonly fixed?: { readonly size: number; write(value: T, target: Uint8Array, at: number): void }
  /**
   * Optional: a copy that shares nothing with `value` and is exactly what the way to bytes and back would give; undefined
   * where that is not certain. A store then keeps such copies and hands out such copies, and serialises once a commit.
   * `isCopy`: the value is such a copy itself.
   */
  copy?(value: T, isCopy?: boolean): T | undefined
}

/** What a serde throws when it cannot encode a value or decode bytes. */
export class SerdeError extends Error {
  override readonly name = 'SerdeError'
}
