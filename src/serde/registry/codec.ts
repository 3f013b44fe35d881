/** What a format brings to a serde over the registry. */
import type { ImportedSchema, KnownSchema, SchemaType } from '../schemas.ts'

/** Reads one value from what lies behind the id, between `start` and `end`. Throws where it is not exactly that. */
export type ReadValue = (bytes: Buffer, start: number, end: number) => unknown

/** Writes a value from `at` on; gives where it ends, or a negative number: so many bytes were missing. */
export type WriteValue = (value: unknown, bytes: Buffer, at: number) => number

export interface OwnSchema {
  /** Full name of the record or message; the title of a JSON Schema. */
  readonly name: string
  readonly text: string
  readonly imports?: readonly ImportedSchema[]
}

export interface Codec {
  readonly type: SchemaType
  /** For errors and for `/topology/compiled`. */
  readonly name: string
  /** The application's schemas; none: the newest of the subject is taken for it. Several: a topic of several kinds. */
  readonly own: readonly OwnSchema[]
  /** What is read is not held against the application's schemas. */
  readonly readsAnything?: boolean
  /** How to read what was written with `writer`. `own`: the application's schemas, as far as they are in the registry. */
  reader(writer: KnownSchema, newest: KnownSchema | undefined): ReadValue
  /** How to write values with the application's schemas, which stand in the registry as `own`. */
  writer(own: readonly KnownSchema[]): ValueWriter
  /** See `Serde.json`. `own` as in `reader`. */
  fromJson(value: unknown, newest: KnownSchema | undefined): unknown
  toJson(value: unknown): unknown
}

export interface ValueWriter {
  /** Which of the own schemas a value is of: the id in front of it. */
  idOf(value: unknown): number
  readonly write: WriteValue
}
