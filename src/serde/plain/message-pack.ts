/** MessagePack, by its own library for JavaScript. */
import { optionalPackage } from '../registry/optional-package.ts'
import { type Serde, SerdeError } from '../serde.ts'
import { PlainSerde } from './plain-serde.ts'

/** What `serdes.messagePack` may be told. */
export interface MessagePackOptions {
  /**
   * What an integer of 64 bits is: `number` (default), which refuses what is not exact, or `bigint`. A bigint is written
   * in 64 bits; with `bigint` a number beyond 32 bits is written as a double.
   */
  readonly longs?: 'number' | 'bigint'
}

interface Encoder {
  encodeSharedRef(value: unknown): Uint8Array
}

interface Decoder {
  decode(bytes: Uint8Array): unknown
}

interface ExtensionCodec {
  register(extension: { type: number; encode(value: unknown): null; decode(): undefined }): void
}

interface MessagePackModule {
  readonly ExtensionCodec: new () => ExtensionCodec
  readonly Encoder: new (options: object) => Encoder
  readonly Decoder: new (options: object) => Decoder
}

/** Behind `serdes.messagePack`. */
export function messagePack<T>({ longs = 'number' }: MessagePackOptions = {}): Serde<T> {
  const library = optionalPackage<MessagePackModule>('@msgpack/msgpack', 'The MessagePack format')
  const extensionCodec = new library.ExtensionCodec()
  extensionCodec.register({ type: 0, encode: refuseCollection, decode: () => undefined })
  const encoder = new library.Encoder({ useBigInt64: longs === 'bigint', ignoreUndefined: true, extensionCodec })
  /** By the number of bits of a record's length: lists that are longer than their record would take all memory. */
  const decoders: Decoder[] = []
  const decoderFor = (length: number): Decoder => {
    const bits = 32 - Math.clz32(length)
    const most = 2 ** bits
    const limits = {
      maxStrLength: most,
      maxBinLength: most,
      maxArrayLength: most,
      maxMapLength: most,
      maxExtLength: most,
    }
    decoders[bits] ??= new library.Decoder({ useBigInt64: true, ...limits })
    return decoders[bits]
  }
  return new PlainSerde<T>({
    name: 'messagePack',
    read: (bytes, start, end) => {
      let mayHaveLongs = false
      let mayHaveBytes = false
      // Bytes that only look like a mark cost some time, and nothing else.
      for (let i = start; i < end; i++) {
        const byte = bytes[i] as number
        if (byte === 0xcf || byte === 0xd3) mayHaveLongs = true
        else if ((byte >= 0xc4 && byte <= 0xc9) || (byte >= 0xd4 && byte <= 0xd8)) mayHaveBytes = true
      }
      // The library gives views of what it reads, and these bytes are lent.
      const given = mayHaveBytes
        ? new Uint8Array(bytes.subarray(start, end))
        : new Uint8Array(bytes.buffer, bytes.byteOffset + start, end - start)
      const value = decoderFor(end - start).decode(given)
      return mayHaveLongs && longs === 'number' ? withNumbers(value) : value
    },
    write: (value, bytes, at) => {
      const written = encoder.encodeSharedRef(value)
      if (bytes.length - at < written.length) return bytes.length - at - written.length
      bytes.set(written, at)
      return at + written.length
    },
    fromJson: (value) => value,
    toJson: (value) => value,
  })
}

/** They have no members, and would be written as objects without any. */
function refuseCollection(value: unknown): null {
  if (value instanceof Map || value instanceof Set)
    throw new SerdeError(
      `MessagePack is written of objects and lists, and this is a ${value.constructor.name}: give Object.fromEntries(…) or a list of it.`,
    )
  return null
}

/** The same value with numbers in place of bigints; what a number does not hold exactly is refused. */
function withNumbers(value: unknown): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value)
    if (Number.isSafeInteger(number)) return number
    throw new SerdeError(`MessagePack holds ${value}, which is no exact number; read it with longs: 'bigint'.`)
  }
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = withNumbers(value[i])
  } else if (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype) {
    const members = value as Record<string, unknown>
    for (const name in members) members[name] = withNumbers(members[name])
  }
  return value
}
