/** What stands in where no serde is known: strings as UTF-8, everything else as JSON. */
import { json } from '../serde/json.ts'
import { string } from '../serde/primitive.ts'
import type { Serde } from '../serde/serde.ts'

/** Values, and keys that are no text. */
export const plainValueSerde: Serde<unknown> = json<unknown>()

/** Keys of topics: text is text, anything else JSON; read back as text. */
export const plainKeySerde: Serde<unknown> = {
  name: 'string',
  serialize: (key) => (typeof key === 'string' ? string.serialize(key) : plainValueSerde.serialize(key)),
  deserialize: (bytes) => string.deserialize(bytes),
  isPlain: (key) => typeof key === 'string' && key.isWellFormed(),
}

/**
 * Keys between sub-topologies and in stores, where nobody said what they are: a text stays plain UTF-8, so that it
 * meets the same key of a topic; anything else is marked by a zero byte, so that it is read back as what it was.
 */
export const internalKeySerde: Serde<unknown> = {
  name: 'auto',
  serialize: (key) => {
    if (typeof key === 'string' && key.charCodeAt(0) !== 0) return string.serialize(key)
    const text = plainValueSerde.serialize(key)
    const bytes = new Uint8Array(text.length + 1)
    bytes.set(text, 1)
    return bytes
  },
  deserialize: (bytes) => (bytes[0] === 0 ? plainValueSerde.deserialize(bytes.subarray(1)) : string.deserialize(bytes)),
  isPlain: (key) => typeof key === 'string' && key.charCodeAt(0) !== 0 && key.isWellFormed(),
}
