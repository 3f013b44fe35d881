/** The serdes that come with the engine. */
import { json } from './json.ts'
import { boolean, bytes, float64, int32, int64, long, string, uuid } from './primitive.ts'
import { sessionWindowed, windowed } from './windowed.ts'

export type { StandardIssue, StandardResult, StandardSchema } from './json.ts'
export { type Serde, SerdeError } from './serde.ts'
export type { Window, Windowed } from './windowed.ts'

/**
 * Serdes for keys and values. Null needs none: it is a null on the wire. Numbers are big-endian, as Kafka's own
 * serializers write them.
 *
 * @example
 * topology.stream('orders', { key: serdes.string, value: serdes.json<Order>() })
 */
export const serdes = {
  string,
  json,
  int32,
  int64,
  long,
  /** The encoding of counts: Kafka Streams' Long. */
  count: long,
  float64,
  /** Any number: a double. */
  number: float64,
  boolean,
  bytes,
  uuid,
  windowed,
  sessionWindowed,
} as const
