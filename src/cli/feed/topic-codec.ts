/** How keys and values of a topic are written and read on the command line, by the serdes of the application. */
import { type Serde, SerdeWaits } from '../../serde/serde.ts'
import { textOrBase64 } from '../../serde/shown.ts'
import type { CompiledTopology } from '../../topology/compiled.ts'
import type { FeedRecord } from './feed-lines.ts'

interface SerdePair {
  readonly key: Serde<unknown>
  readonly value: Serde<unknown>
}

/** Serdes of one topic; undefined where the application does not name it. */
function pairOf(topology: CompiledTopology | null, topic: string, sinksFirst: boolean): SerdePair | undefined {
  if (!topology) return undefined
  const sink = sinkPair(topology, topic)
  const source = sourcePair(topology, topic)
  return sinksFirst ? (sink ?? source) : (source ?? sink)
}

function sourcePair(topology: CompiledTopology, topic: string): SerdePair | undefined {
  const source = topology.sources.find(
    ({ kind, topics, pattern }) =>
      (kind === 'topics' || kind === 'global') && (topics.includes(topic) || pattern?.test(topic) === true),
  )
  return source && { key: source.keySerde, value: source.valueSerde }
}

function sinkPair(topology: CompiledTopology, topic: string): SerdePair | undefined {
  const sinks = topology.nodes.flatMap(({ spec }) => (spec.op === 'sink' ? [spec] : []))
  // A sink that chooses its topic per record may have written to any topic that no other node names.
  const sink = sinks.find((spec) => spec.topic === topic) ?? sinks.find((spec) => typeof spec.topic !== 'string')
  return sink && { key: sink.keySerde, value: sink.valueSerde }
}

function utf8Bytes(text: string): Uint8Array {
  return Buffer.from(text, 'utf8')
}

/** Bytes of a feed's keys and values. */
export class FeedEncoder {
  readonly #pair: SerdePair | undefined

  constructor(topology: CompiledTopology | null, topic: string) {
    this.#pair = pairOf(topology, topic, false)
  }

  key(record: FeedRecord): Uint8Array | null {
    const { key } = record
    if (key === null) return null
    const serde = this.#pair?.key
    if (serde === undefined || serde.name === 'string') return utf8Bytes(key)
    if (serde.json !== undefined) return ofJsonText(serde, key)
    return trySerialize(serde, key) ?? tryNumber(serde, Number(key)) ?? tryDigits(serde, key) ?? utf8Bytes(key)
  }

  value(record: FeedRecord): Uint8Array | null {
    const { value } = record
    if (value === null || value === undefined) return null
    const serde = this.#pair?.value
    // A serde that takes JSON says what is wrong with it; bytes of another kind are no use to a topic of its records.
    if (serde?.json !== undefined) return ofJson(serde, value)
    const encoded =
      serde &&
      (trySerialize(serde, value) ?? tryNumber(serde, value) ?? tryDigits(serde, value) ?? tryRounded(serde, value))
    if (encoded !== undefined) return encoded
    // What the topic's serde does not take goes as JSON: whether it is refused is for the engine's decoding to say.
    return utf8Bytes(jsonText(value))
  }
}

/** `JSON.rawJSON` is not among the types of the language yet. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): object }

/** Its JSON, where whole numbers beyond 2^53 have all of their digits. */
function jsonText(value: unknown): string {
  return JSON.stringify(value, (_name, each) => (typeof each === 'bigint' ? rawJSON(String(each)) : each))
}

/** The JSON of the value with numbers instead of bigints; undefined: it has none of them. */
function roundedText(value: unknown): string | undefined {
  let hasAny = false
  const text = JSON.stringify(value, (_name, each) => {
    if (typeof each !== 'bigint') return each
    hasAny = true
    return Number(each)
  })
  return hasAny ? text : undefined
}

/** What its JSON wants as a number, a `double` for one, takes no bigint. */
function ofJson(serde: Serde<unknown>, value: unknown): Uint8Array {
  try {
    return serde.serialize(serde.json?.read(value))
  } catch (error) {
    const text = roundedText(value)
    if (text === undefined) throw error
    return serde.serialize(serde.json?.read(JSON.parse(text)))
  }
}

/** A key is text; where the serde takes no text it is the text of JSON. */
function ofJsonText(serde: Serde<unknown>, key: string): Uint8Array {
  try {
    return serde.serialize(serde.json?.read(key))
  } catch (error) {
    const parsed = parsedOrUndefined(key)
    if (parsed === undefined) throw error
    return serde.serialize(serde.json?.read(parsed))
  }
}

function parsedOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function trySerialize(serde: Serde<unknown>, value: unknown): Uint8Array | undefined {
  try {
    return serde.serialize(value)
  } catch {
    return undefined
  }
}

/** JSON has no integers of 64 bits: a serde of bigints gets its number as one. */
function tryNumber(serde: Serde<unknown>, value: unknown): Uint8Array | undefined {
  if (typeof value !== 'number' || Number.isNaN(value)) return undefined
  return trySerialize(serde, value) ?? (Number.isSafeInteger(value) ? trySerialize(serde, BigInt(value)) : undefined)
}

/** A key, or what printing has shown, as a bigint: it is text where no number holds it. */
function tryDigits(serde: Serde<unknown>, value: unknown): Uint8Array | undefined {
  return typeof value === 'string' && /^-?\d+$/.test(value) ? trySerialize(serde, BigInt(value)) : undefined
}

/** A serde without bigints gets numbers; one that writes JSON as it is does not, for it would lose their digits. */
function tryRounded(serde: Serde<unknown>, value: unknown): Uint8Array | undefined {
  const text = roundedText(value)
  const encoded = text === undefined ? undefined : trySerialize(serde, JSON.parse(text))
  return encoded && textOrBase64(encoded) !== text ? encoded : undefined
}

/** Keys and values as JSON can show them. */
export class PrintDecoder {
  readonly #pair: SerdePair | undefined

  constructor(topology: CompiledTopology | null, topic: string) {
    this.#pair = pairOf(topology, topic, true)
  }

  key(bytes: Uint8Array | null): unknown {
    if (bytes === null) return null
    const decoded = this.#pair && tryDeserialize(this.#pair.key, bytes)
    return decoded ? decoded.value : textOrBase64(bytes)
  }

  value(bytes: Uint8Array | null): unknown {
    if (bytes === null) return null
    const decoded = this.#pair && tryDeserialize(this.#pair.value, bytes)
    return decoded ? decoded.value : jsonOrText(bytes)
  }
}

/** Boxed: a serde may well decode to undefined. Throws `SerdeWaits` for what is under way. */
function tryDeserialize(serde: Serde<unknown>, bytes: Uint8Array): { readonly value: unknown } | undefined {
  try {
    const value = serde.deserialize(bytes)
    return { value: serde.json === undefined ? value : serde.json.write(value) }
  } catch (error) {
    if (error instanceof SerdeWaits) throw error
    return undefined
  }
}

function jsonOrText(bytes: Uint8Array): unknown {
  const text = textOrBase64(bytes)
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
