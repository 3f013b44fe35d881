/** What stands in where no serde is known: strings as UTF-8, everything else as JSON. */
import type { Serde } from '../serde/serde.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })

function toJson(value: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(value ?? null))
}

/** Keys of topics: text is text, anything else JSON; read back as text. */
export const plainKeySerde: Serde<unknown> = {
  name: 'string',
  serialize: (key) => (typeof key === 'string' ? encoder.encode(key) : toJson(key)),
  deserialize: (bytes) => decoder.decode(bytes),
}

export const plainValueSerde: Serde<unknown> = {
  name: 'json',
  serialize: toJson,
  deserialize: (bytes) => JSON.parse(decoder.decode(bytes)),
}

/**
 * Keys between sub-topologies and in stores, where nobody said what they are: a text stays plain UTF-8, so that it
 * meets the same key of a topic; anything else is marked by a zero byte, so that it is read back as what it was.
 */
export const internalKeySerde: Serde<unknown> = {
  name: 'auto',
  serialize: (key) => {
    if (typeof key === 'string' && key.charCodeAt(0) !== 0) return encoder.encode(key)
    return encoder.encode(`\0${JSON.stringify(key ?? null)}`)
  },
  deserialize: (bytes) => {
    if (bytes[0] !== 0) return decoder.decode(bytes)
    return JSON.parse(decoder.decode(bytes.subarray(1)))
  },
}
