/** The serdes that come with the engine. */
import { json } from './json.ts'
import { messagePack } from './plain/message-pack.ts'
import { plainAvro } from './plain/plain-avro.ts'
import { plainProtobuf } from './plain/plain-protobuf.ts'
import { boolean, bytes, float64, int32, int64, long, string, uuid } from './primitive.ts'
import { sessionWindowed, windowed } from './windowed.ts'

export type { StandardIssue, StandardResult, StandardSchema } from './json.ts'
export type { MessagePackOptions } from './plain/message-pack.ts'
export type { PlainAvroOptions } from './plain/plain-avro.ts'
export type { ProtobufType } from './plain/plain-protobuf.ts'
export { type Serde, SerdeError } from './serde.ts'
export type { Window, Windowed } from './windowed.ts'

/**
 * The serdes that come with Millrace. Null needs none: a null key or value is a null on the wire. Numbers are
 * big-endian, as Kafka's own serializers write them. A serde that is given something else than its type throws a
 * `SerdeError`, which goes the way of `errors.producing` or `errors.decoding`.
 *
 * @example
 * topology.stream('orders', { key: serdes.string, value: serdes.json<Order>() })
 */
export const serdes = {
  /** UTF-8 text: `Serde<string>`. */
  string,
  /**
   * JSON of the type that is asked for: `serdes.json<Order>()`. With a schema (Standard Schema) what is read is
   * validated.
   */
  json,
  /** Signed 32-bit integer, 4 bytes: `Serde<number>`. */
  int32,
  /** Signed 64-bit integer, 8 bytes: `Serde<bigint>`, the whole range of Kafka Streams' Long. */
  int64,
  /** Signed 64-bit integer, 8 bytes: `Serde<number>`, Kafka Streams' Long within ±(2^53 − 1). */
  long,
  /** The encoding of counts: the same as `long`. */
  count: long,
  /** Double, 8 bytes: `Serde<number>`, Kafka's Double. */
  float64,
  /** Any number: the same as `float64`. */
  number: float64,
  /** One byte, 0 or 1: `Serde<boolean>`. */
  boolean,
  /** Bytes as they are: `Serde<Uint8Array>`. */
  bytes,
  /** A UUID as its 36 characters of text in lower case: `Serde<string>`. */
  uuid,
  /**
   * Keys of time and sliding windows: `serdes.windowed(serdes.string, 60_000)`. The size is in milliseconds; only the
   * start lies in the bytes.
   */
  windowed,
  /** Keys of sessions: `serdes.sessionWindowed(serdes.string)`. Start and end lie in the bytes. */
  sessionWindowed,
  /**
   * Avro without a schema registry: the bytes are the record alone, and both sides know the schema. `writer` is the schema
   * of those who write, where it is another one: what they write is read by Avro's rules. Types as in `millrace/registry`.
   * Needs the package `avsc`.
   *
   * @example
   * interface Order { readonly id: string; readonly note: string | null }
   * const order = serdes.avro<Order>({
   *   type: 'record',
   *   name: 'Order',
   *   fields: [
   *     { name: 'id', type: 'string' },
   *     { name: 'note', type: ['null', 'string'], default: null },
   *   ],
   * })
   * topology.stream('notes', { key: serdes.string, value: order }).mapValues(({ note }) => note ?? 'none').to('texts', { value: serdes.string })
   * // notes ← a: { id: 'o1', note: null }
   * // notes ← b: { id: 'o2', note: 'gift' }
   * // texts → a: 'none'
   * // texts → b: 'gift'
   * @throws EngineError `APPLICATION_INVALID` when the package is missing, `TOPOLOGY_INVALID` when a schema is none, or
   * cannot read what is written with `writer`.
   */
  avro: plainAvro,
  /**
   * A Protobuf message without a schema registry: the bytes are the message alone. The type is one that
   * `@bufbuild/protoc-gen-es` generates, and the values are its messages: `serdes.protobuf<Order>(OrderSchema)`. Fields that
   * the application does not know are kept and written again. Needs the package `@bufbuild/protobuf`.
   *
   * @example
   * topology.stream('changes', { key: serdes.string, value: serdes.protobuf<Timestamp>(TimestampSchema) })
   *   .mapValues(({ seconds }) => Number(seconds))
   *   .to('seconds', { value: serdes.long })
   * // changes ← a: { seconds: 5n }
   * // seconds → a: 5
   * @throws EngineError `APPLICATION_INVALID` when the package is missing.
   */
  protobuf: plainProtobuf,
  /**
   * MessagePack: what JSON holds, and bytes and dates too. Integers of 64 bits are numbers, refused where these are not
   * exact, or bigints: `serdes.messagePack<Order>({ longs: 'bigint' })`. Needs the package `@msgpack/msgpack`.
   *
   * @example
   * topology.stream('pings', { key: serdes.string, value: serdes.messagePack<{ n: number }>() })
   *   .mapValues(({ n }) => n + 1)
   *   .to('pongs', { value: serdes.int32 })
   * // pings ← a: { n: 1 }
   * // pongs → a: 2
   * @throws EngineError `APPLICATION_INVALID` when the package is missing.
   */
  messagePack,
} as const
