/** A serde whose bytes are the format's and nothing else. */
import { RecordRoom } from '../record-room.ts'
import { type Serde, SerdeError } from '../serde.ts'

/** What a format brings to it. */
export interface PlainFormat {
  readonly name: string
  /** Reads the value that lies between `start` and `end`. Throws where it is not exactly that. */
  read(bytes: Buffer, start: number, end: number): unknown
  /** Writes a value from `at` on; gives where it ends, or a negative number: so many bytes were missing. */
  write(value: unknown, bytes: Buffer, at: number): number
  /** See `Serde.json`. */
  fromJson(value: unknown): unknown
  toJson(value: unknown): unknown
}

export class PlainSerde<T> implements Serde<T> {
  readonly name: string
  readonly #format: PlainFormat
  readonly #room: RecordRoom<T>
  /** The bytes read last, as a `Buffer`: many records lie in the same ones. */
  #lastBytes: Uint8Array | undefined
  #lastBuffer: Buffer = Buffer.alloc(0)
  readonly json = {
    read: (value: unknown): T => this.#format.fromJson(value) as T,
    write: (value: T): unknown => this.#format.toJson(value),
  }

  constructor(format: PlainFormat) {
    this.name = format.name
    this.#format = format
    this.#room = new RecordRoom<T>((value, bytes, at) => this.#write(value, bytes, at))
  }

  deserialize(bytes: Uint8Array): T {
    return this.deserializeFrom(bytes, 0, bytes.length)
  }

  deserializeFrom(bytes: Uint8Array, start: number, end: number): T {
    if (bytes !== this.#lastBytes) {
      this.#lastBytes = bytes
      this.#lastBuffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    }
    try {
      return this.#format.read(this.#lastBuffer, start, end) as T
    } catch (cause) {
      if (cause instanceof SerdeError) throw cause
      throw new SerdeError(`The serde '${this.name}' cannot read the bytes: ${(cause as Error).message}.`, { cause })
    }
  }

  serialize(value: T): Uint8Array {
    return this.#room.kept(value)
  }

  serializeTransient(value: T): Uint8Array {
    return this.#room.brief(value)
  }

  #write(value: T, bytes: Buffer, at: number): number {
    try {
      return this.#format.write(value, bytes, at)
    } catch (cause) {
      if (cause instanceof SerdeError) throw cause
      throw new SerdeError(`The serde '${this.name}' cannot write the value: ${(cause as Error).message}.`, { cause })
    }
  }
}
