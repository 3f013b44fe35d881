/**
 * Turns keys or values into bytes and back. Implement it for a format of your own.
 * Null never reaches a serde: a null key or value is a null on the wire.
 */
export interface Serde<T> {
  /** Shown in errors and in `/topology/compiled`. */
  readonly name: string
  serialize(value: T): Uint8Array
  /** May throw: the record then goes to the decoding error handler. `bytes` must not be kept or changed. */
  deserialize(bytes: Uint8Array): T
}
