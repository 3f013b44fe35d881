/** Keys of windowed results, in the layouts of Kafka Streams. */
import { readInt64, writeInt64 } from './primitive.ts'
import { type Serde, SerdeError } from './serde.ts'

/** A span of event time, epoch milliseconds. */
export interface Window {
  /** The first instant, inclusive. */
  readonly start: number
  /** Exclusive for tumbling and hopping windows, inclusive for sliding and session windows. */
  readonly end: number
}

/** The key of a windowed result: the key that was grouped by, and the window. */
export interface Windowed<K> extends Window {
  /** The key that was grouped by. */
  readonly key: K
}

function tooShort(name: string, bytes: Uint8Array, least: number): SerdeError {
  return new SerdeError(
    `The serde '${name}' reads at least ${least} bytes and found ${bytes.length}; the data was written by another serde.`,
  )
}

/** A key of a schema registry stands under the subject of the topic, with a window behind it as without. */
function perTopic<K>(
  inner: Serde<K>,
  around: (bound: Serde<K>) => Serde<Windowed<K>>,
): Pick<Serde<Windowed<K>>, 'forTopic'> {
  if (inner.forTopic === undefined) return {}
  return { forTopic: (topic, part) => around(inner.forTopic?.(topic, part) ?? inner) }
}

/** Other times would be cut to some whole number. */
function checked(name: string, time: number): number {
  if (Number.isSafeInteger(time)) return time
  throw new SerdeError(`The serde '${name}' takes times of windows in whole milliseconds, not ${time}.`)
}

/** Bytes of the inner key with room for `extra` bytes behind it. */
function extended<K>(inner: Serde<K>, key: K, extra: number): Uint8Array {
  const keyBytes = inner.serialize(key)
  const bytes = new Uint8Array(keyBytes.length + extra)
  bytes.set(keyBytes)
  return bytes
}

/**
 * Keys of time windows: the key's bytes and the 8-byte start. The end does not lie in the bytes; it is `start +
 * sizeMs`.
 *
 * @param sizeMs window size in milliseconds; for sliding windows the time difference.
 */
export function windowed<K>(inner: Serde<K>, sizeMs: number): Serde<Windowed<K>> {
  const name = `windowed(${inner.name})`
  return {
    name,
    parts: [inner],
    ...perTopic(inner, (bound) => windowed(bound, sizeMs)),
    serialize(value) {
      const bytes = extended(inner, value.key, 8)
      writeInt64(bytes, bytes.length - 8, checked(name, value.start))
      return bytes
    },
    deserialize(bytes) {
      if (bytes.length < 8) throw tooShort(name, bytes, 8)
      const at = bytes.length - 8
      const start = readInt64(bytes, at)
      return {
        key: inner.deserialize(bytes.subarray(0, at)),
        start,
        end: Math.min(start + sizeMs, Number.MAX_SAFE_INTEGER),
      }
    },
  }
}

/** Keys of session windows: the key's bytes, the 8-byte end, the 8-byte start. */
export function sessionWindowed<K>(inner: Serde<K>): Serde<Windowed<K>> {
  const name = `sessionWindowed(${inner.name})`
  return {
    name,
    parts: [inner],
    ...perTopic(inner, sessionWindowed),
    serialize(value) {
      const bytes = extended(inner, value.key, 16)
      writeInt64(bytes, bytes.length - 16, checked(name, value.end))
      writeInt64(bytes, bytes.length - 8, checked(name, value.start))
      return bytes
    },
    deserialize(bytes) {
      if (bytes.length < 16) throw tooShort(name, bytes, 16)
      const at = bytes.length - 16
      const end = readInt64(bytes, at)
      return { key: inner.deserialize(bytes.subarray(0, at)), start: readInt64(bytes, at + 8), end }
    },
  }
}
