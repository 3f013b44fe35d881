/** From bytes to a record that operators understand. */
import { EngineError, messageOf } from '../errors.ts'
import { type Origin, Rec } from '../operators/contract.ts'
import type { CompiledSource } from '../topology/compiled.ts'
import type { Headers } from '../wire/headers.ts'

/** Decodes what the sub-topology reads; a value that nobody looks at stays bytes. */
export function decodeRecord(
  source: CompiledSource,
  key: Uint8Array | null,
  value: Uint8Array | null,
  timestamp: number,
  headers: Headers,
  origin: Origin,
): Rec {
  let decodedKey: unknown = null
  let decodedValue: unknown = null
  try {
    if (key !== null) decodedKey = source.keySerde.deserialize(key)
  } catch (error) {
    throw decodeFailed('key', source.keySerde.name, origin, error)
  }
  try {
    if (value !== null) decodedValue = source.readsValue ? source.valueSerde.deserialize(value) : undefined
  } catch (error) {
    throw decodeFailed('value', source.valueSerde.name, origin, error)
  }
  return new Rec(decodedKey, decodedValue, timestamp, headers, origin, key, value)
}

function decodeFailed(part: string, serde: string, origin: Origin, cause: unknown): EngineError {
  const { topic, partition, offset } = origin
  return new EngineError(
    'DECODE_FAILED',
    `the ${part} of record ${topic}:${partition}@${offset} cannot be read as ${serde}: ${messageOf(cause)}`,
    { cause, topic, partition, offset },
  )
}
