/** The serdes that are used where none is known: strings as UTF-8, everything else as JSON. */
import { json } from '../../serde/json.ts'
import { string } from '../../serde/primitive.ts'
import type { Serde } from '../../serde/serde.ts'

/** For values, and for keys that are no text. */
export const plainValueSerde: Serde<unknown> = json<unknown>()

/** For keys of topics: text is text, anything else JSON. They are read back as text. */
export const plainKeySerde: Serde<unknown> = {
  name: 'string',
  serialize: (key) => (typeof key === 'string' ? string.serialize(key) : plainValueSerde.serialize(key)),
  deserialize: (bytes) => string.deserialize(bytes),
  isPlain: (key) => typeof key === 'string' && key.isWellFormed(),
}

/**
 * For keys in stores and between sub-topologies whose serde is not known. A text stays plain UTF-8, so that it equals
 * the same key of a topic. Anything else is marked by a zero byte, so that it is read back as what it was.
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
