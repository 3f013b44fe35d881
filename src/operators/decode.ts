/** Records out of their bytes. */
import { ByteRange } from '../base/byte-range.ts'
import { EngineError } from '../base/errors.ts'
import type { Headers } from '../broker/wire/headers.ts'
import { type Serde, SerdeWaits } from '../serde/serde.ts'
import type { CompiledSource } from '../topology/compiled.ts'
import { type Origin, Rec } from './contract.ts'

/**
 * Makes a record of its bytes with the serdes of its source; the value stays bytes where nobody looks at it.
 *
 * @throws EngineError `DECODE_FAILED`
 * @throws SerdeWaits where something is under way that a serde needs.
 */
export function decodeRecord(
  source: CompiledSource,
  keyRange: ByteRange | null,
  valueRange: ByteRange | null,
  timestamp: number,
  headers: Headers,
  origin: Origin,
): Rec {
  let what = 'key'
  try {
    const key = keyRange === null ? null : read(source.keySerde, keyRange)
    what = 'value'
    const value = valueRange === null ? null : (source.readsValue ? read : unread)(source.valueSerde, valueRange)
    return new Rec(key, value, timestamp, headers, origin, keyRange, valueRange)
  } catch (error) {
    throw decodingFailed(error, source, what, origin)
  }
}

/** Apart, as all that is rare is on the way of every record: what is short V8 inlines. */
function decodingFailed(error: unknown, source: CompiledSource, what: string, origin: Origin): unknown {
  if (error instanceof SerdeWaits) return error
  const { topic, partition, offset } = origin
  const serde = what === 'key' ? source.keySerde : source.valueSerde
  const message = error instanceof Error ? error.message : String(error)
  return new EngineError(
    'DECODE_FAILED',
    `The ${what} of the record ${topic}/${partition} at offset ${offset} could not be decoded with the serde ${serde.name}: ${message}`,
    { cause: error, node: source.name, topic, partition, offset },
  )
}

/** As `decodeRecord`, of bytes that are the key's and the value's alone. */
export function decodeBytes(
  source: CompiledSource,
  key: Uint8Array | null,
  value: Uint8Array | null,
  timestamp: number,
  headers: Headers,
  origin: Origin,
): Rec {
  return decodeRecord(source, key && ByteRange.of(key), value && ByteRange.of(value), timestamp, headers, origin)
}

function read(serde: Serde<unknown>, range: ByteRange): unknown {
  return serde.deserializeFrom === undefined
    ? serde.deserialize(range.view())
    : serde.deserializeFrom(range.buffer, range.start, range.end)
}

/** Whether there is a value counts also where nobody reads it. */
function unread({ nullBytes }: Serde<unknown>, { buffer, start, end }: ByteRange): null | undefined {
  if (nullBytes === undefined || end - start !== nullBytes.length) return undefined
  for (let i = 0; i < nullBytes.length; i++) if (buffer[start + i] !== nullBytes[i]) return undefined
  return null
}
