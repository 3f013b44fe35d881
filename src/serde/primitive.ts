/** Serdes of strings, bytes, booleans and numbers; numbers lie big-endian, as Kafka's own serializers write them. */
import { type Serde, SerdeError } from './serde.ts'
import { asciiText, shortKey, shortText } from './short-text.ts'

/** How a refused value is shown in an error: its type and a short form of it. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (value instanceof Uint8Array) return `${value.length} bytes`
  const text = typeof value === 'object' || typeof value === 'function' ? '' : ` ${String(value).slice(0, 40)}`
  return `${typeof value}${text}`
}

function refuse(serde: string, value: unknown, wanted: string): SerdeError {
  return new SerdeError(
    `The serde '${serde}' takes ${wanted}, not ${shown(value)}; give it one, or choose another serde.`,
  )
}

function exactly(serde: string, bytes: Uint8Array, length: number): void {
  if (bytes.length !== length) {
    throw new SerdeError(
      `The serde '${serde}' reads ${length} bytes and found ${bytes.length}; the data was written by another serde.`,
    )
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

const utf8Slice = Buffer.prototype.utf8Slice
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The UTF-8 bytes of a string. Short ASCII strings, the usual keys, are written without a call into the platform. */
export function encodeUtf8(text: string): Uint8Array {
  const length = text.length
  if (length > shortKey) return Buffer.from(text, 'utf8')
  const bytes = new Uint8Array(length)
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i)
    if (unit > 127) return Buffer.from(text, 'utf8')
    bytes[i] = unit
  }
  return bytes
}

/** The string of UTF-8 bytes between `start` and `end`. Throws where they are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array, serde: string, start = 0, end = bytes.length): string {
  if (end - start <= shortText) {
    const short = asciiText(bytes, start, end)
    if (short !== undefined) return short
  }
  const text = utf8Slice.call(bytes, start, end)
  // The fast reader replaces broken sequences. Only a text that contains the replacement is read again by the strict
  // one.
  if (!text.includes('\ufffd')) return text
  try {
    return decoder.decode(bytes.subarray(start, end))
  } catch (cause) {
    throw new SerdeError(
      `The serde '${serde}' found bytes that are not UTF-8; the data was written by another serde.`,
      {
        cause,
      },
    )
  }
}

/** UTF-8 text. A lone surrogate is refused, because it would not come back. */
export const string: Serde<string> = {
  name: 'string',
  serialize(value) {
    if (typeof value !== 'string') throw refuse('string', value, 'a string')
    if (!value.isWellFormed()) throw refuse('string', value, 'well-formed text')
    return encodeUtf8(value)
  },
  deserialize: (bytes) => decodeUtf8(bytes, 'string'),
  deserializeFrom: (bytes, start, end) => decodeUtf8(bytes, 'string', start, end),
  isPlain: (value) => typeof value === 'string' && value.isWellFormed(),
}

/** Bytes as they are. What comes back is a copy that may be kept. */
export const bytes: Serde<Uint8Array> = {
  name: 'bytes',
  serialize(value) {
    if (!(value instanceof Uint8Array)) throw refuse('bytes', value, 'a Uint8Array')
    return value.slice()
  },
  deserialize: (value) => new Uint8Array(value),
}

/** One byte, 0 or 1. */
export const boolean: Serde<boolean> = {
  name: 'boolean',
  serialize(value) {
    if (typeof value !== 'boolean') throw refuse('boolean', value, 'true or false')
    return Uint8Array.of(value ? 1 : 0)
  },
  deserialize(bytes) {
    exactly('boolean', bytes, 1)
    if ((bytes[0] as number) > 1)
      throw new SerdeError(`The serde 'boolean' found the byte ${bytes[0]}, neither 0 nor 1.`)
    return bytes[0] === 1
  },
  isPlain: (value) => typeof value === 'boolean',
}

const isInt32 = (value: unknown): boolean => typeof value === 'number' && (value | 0) === value && !Object.is(value, -0)

/** Signed 32-bit integer, 4 bytes. */
export const int32: Serde<number> = {
  name: 'int32',
  serialize(value) {
    if (!isInt32(value)) throw refuse('int32', value, 'an integer from -2147483648 to 2147483647')
    return Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value)
  },
  deserialize(bytes) {
    exactly('int32', bytes, 4)
    return (
      ((bytes[0] as number) << 24) | ((bytes[1] as number) << 16) | ((bytes[2] as number) << 8) | (bytes[3] as number)
    )
  },
  isPlain: isInt32,
}

const minInt64 = -(2n ** 63n)
const maxInt64 = 2n ** 63n - 1n
const isInt64 = (value: unknown): boolean => typeof value === 'bigint' && value >= minInt64 && value <= maxInt64

/** Signed 64-bit integer as bigint, 8 bytes: Kafka Streams' Long in its whole range. */
export const int64: Serde<bigint> = {
  name: 'int64',
  serialize(value) {
    if (!isInt64(value)) throw refuse('int64', value, 'a bigint of 64 bits')
    const bytes = new Uint8Array(8)
    viewOf(bytes).setBigInt64(0, value)
    return bytes
  },
  deserialize(bytes) {
    exactly('int64', bytes, 8)
    return viewOf(bytes).getBigInt64(0)
  },
  isPlain: isInt64,
}

/** Writes a safe integer as signed 64 bits, big-endian. */
export function writeInt64(target: Uint8Array, at: number, value: number): void {
  const high = Math.floor(value / 4294967296)
  const low = value - high * 4294967296
  target[at] = high >> 24
  target[at + 1] = high >> 16
  target[at + 2] = high >> 8
  target[at + 3] = high
  target[at + 4] = low / 16777216
  target[at + 5] = low >>> 16
  target[at + 6] = low >>> 8
  target[at + 7] = low
}

/** Reads signed 64 bits, big-endian; inexact beyond 2^53. */
export function readInt64(source: Uint8Array, at: number): number {
  const high =
    ((source[at] as number) << 24) |
    ((source[at + 1] as number) << 16) |
    ((source[at + 2] as number) << 8) |
    (source[at + 3] as number)
  const low =
    (source[at + 4] as number) * 16777216 +
    (((source[at + 5] as number) << 16) | ((source[at + 6] as number) << 8) | (source[at + 7] as number))
  return high * 4294967296 + low
}

const isLong = (value: unknown): boolean => Number.isSafeInteger(value) && !Object.is(value, -0)

/** Signed 64-bit integer as a JavaScript number, 8 bytes: Kafka Streams' Long, within ±(2^53 − 1). Counts use it. */
export const long: Serde<number> = {
  name: 'long',
  serialize(value) {
    if (!isLong(value)) throw refuse('long', value, 'an integer of at most 53 bits')
    const bytes = new Uint8Array(8)
    writeInt64(bytes, 0, value)
    return bytes
  },
  deserialize(bytes) {
    exactly('long', bytes, 8)
    const value = readInt64(bytes, 0)
    if (!Number.isSafeInteger(value)) {
      throw new SerdeError(`The serde 'long' found ${value}, more than a number holds exactly; use 'int64' (bigint).`)
    }
    return value
  },
  isPlain: isLong,
  fixed: { size: 8, write: (value, target, at) => writeInt64(target, at, value) },
}

const notANumber = [0x7f, 0xf8]

/** IEEE 754 double, 8 bytes: Kafka's Double. NaN and infinities included. */
export const float64: Serde<number> = {
  name: 'float64',
  serialize(value) {
    if (typeof value !== 'number') throw refuse('float64', value, 'a number')
    const bytes = new Uint8Array(8)
    // NaN has many forms, by how it came about. Kafka's serializer writes this one, so that it is one key.
    if (Number.isNaN(value)) bytes.set(notANumber)
    else viewOf(bytes).setFloat64(0, value)
    return bytes
  },
  deserialize(bytes) {
    exactly('float64', bytes, 8)
    return viewOf(bytes).getFloat64(0)
  },
  isPlain: (value) => typeof value === 'number',
}

const uuidText = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** A UUID as its 36 characters of text in lower case, as Kafka's own serializer writes it. */
export const uuid: Serde<string> = {
  name: 'uuid',
  serialize(value) {
    if (typeof value !== 'string' || !uuidText.test(value)) throw refuse('uuid', value, 'the text of a UUID')
    return encodeUtf8(value.toLowerCase())
  },
  deserialize(bytes) {
    const text = decodeUtf8(bytes, 'uuid')
    if (!uuidText.test(text))
      throw new SerdeError(`The serde 'uuid' found text that is no UUID: '${text.slice(0, 40)}'.`)
    return text.toLowerCase()
  },
}
