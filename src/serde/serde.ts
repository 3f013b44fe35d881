import type { SchemaUser } from './schemas.ts'

/**
 * Turns keys or values into bytes and back. Implement `name`, `serialize` and `deserialize` for a format of your own;
 * the other members only save time. Null never reaches a serde: a null key or value is a null on the wire.
 *
 * @example
 * const date: Serde<Date> = {
 *   name: 'date',
 *   serialize: (value) => Buffer.from(value.toISOString()),
 *   deserialize: (bytes) => new Date(Buffer.from(bytes).toString()),
 * }
 */
export interface Serde<T> {
  /** Shown in errors and in `/topology/compiled`. */
  readonly name: string
  /** The bytes of a value, which the caller may keep. May throw: the record then goes the way of `errors.producing`. */
  serialize(value: T): Uint8Array
  /** As `serialize`, into bytes that are valid until the next such call only: for callers who copy them at once. */
  serializeTransient?(value: T): Uint8Array
  /**
   * The value of some bytes, which must be neither kept nor changed. May throw: the record then goes the way of
   * `errors.decoding`.
   */
  deserialize(bytes: Uint8Array): T
  /**
   * As `deserialize`, from the part of `bytes` between `start` and `end`; the rest belongs to other records. It saves a
   * view for each record.
   */
  deserializeFrom?(bytes: Uint8Array, start: number, end: number): T
  /**
   * True for a primitive that `serialize` surely accepts and that comes back from its bytes unchanged. A store then
   * keeps the value as it is, and serialises it once a commit instead of at every write.
   */
  isPlain?(value: T): boolean
  /**
   * Writes a value for which `isPlain` is true, and which takes `size` bytes, into bytes that are there already, from
   * `at` on.
   */
  readonly fixed?: { readonly size: number; write(value: T, target: Uint8Array, at: number): void }
  /**
   * A copy that shares nothing with `value` and equals what would come back from its bytes; undefined where that is not
   * certain. A store then keeps such copies, hands out such copies, and serialises once a commit. `isCopy`: the value
   * is such a copy itself.
   */
  copy?(value: T, isCopy?: boolean): T | undefined
  /**
   * Optional: the bytes, eight at most, that stand for no value where there are bytes, as `null` in JSON. Where nobody
   * reads the values of a stream, a record without one is known by them.
   */
  readonly nullBytes?: Uint8Array
  /** Optional: the serde as it is for one topic: asked for where a stream or a sink names it. */
  forTopic?(topic: string, part: 'key' | 'value'): Serde<T>
  /** Optional: the serdes that it is made of. */
  readonly parts?: ReadonlyArray<Serde<unknown>>
  /** Optional: what it has to know of a schema registry. */
  readonly schemas?: SchemaUser
  /** Optional: a value of plain JSON as the serde takes it, and the other way round: for records as people write and read them. */
  readonly json?: { read(value: unknown): T; write(value: T): unknown }
}

/**
 * What a serde throws for bytes that it can read once something has come, which is under way. The record waits, and those
 * of its key behind it; then the serde is asked again.
 */
export class SerdeWaits extends Error {
  override readonly name = 'SerdeWaits'
  /** Settles when it is worth asking again. Never rejects. */
  readonly ready: Promise<void>

  constructor(message: string, ready: Promise<void>) {
    super(message)
    this.ready = ready
  }
}

/** What a serde throws when it cannot encode a value or decode bytes. */
export class SerdeError extends Error {
  override readonly name = 'SerdeError'
}
