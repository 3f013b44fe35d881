/** Keys and values as people read and write them: as JSON. */
import type { Serde } from './serde.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function textOrBase64(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
  }
}

/** What `JSON.stringify` cannot write by itself. */
export function jsonReplacer(this: unknown, name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  // A Buffer has a `toJSON` of its own, whose result is what arrives here as `value`.
  const original = (this as Readonly<Record<string, unknown>> | undefined)?.[name]
  if (original instanceof Uint8Array) return Buffer.from(original).toString('base64')
  if (value instanceof Map) return Object.fromEntries(value)
  if (value instanceof Set) return [...value]
  return value
}

/** A value as plain JSON. */
export function shownJson(serde: Serde<unknown>, value: unknown): unknown {
  const plain = serde.json === undefined ? value : serde.json.write(value)
  return plain === undefined ? null : (JSON.parse(JSON.stringify(plain, jsonReplacer) ?? 'null') as unknown)
}

/** Before the bytes of a key that cannot be written in another way. */
const base64 = 'base64:'

/** How the key is to be written so that `keyOfText` understands it: as it is shown, else its bytes. Null where there is no way. */
export function textOfKey(serde: Serde<unknown>, key: unknown): string | null {
  const bytes = serde.serialize(key)
  const texts = [JSON.stringify(shownJson(serde, key)), `${base64}${Buffer.from(bytes).toString('base64')}`]
  const isMeant = (text: string): boolean => {
    const understood = keyOfText(serde, text)
    return understood !== undefined && Buffer.compare(serde.serialize(understood.key), bytes) === 0
  }
  return texts.find(isMeant) ?? null
}

/**
 * The value that somebody means who writes a key as text: what the text is as JSON, where the serde takes that and gives
 * it back unchanged, else the text itself, or the key of the bytes behind `base64:`. Undefined where the serde takes none of them.
 */
export function keyOfText(serde: Serde<unknown>, text: string): { readonly key: unknown } | undefined {
  const candidates: unknown[] = []
  const parsed = parsedOrUndefined(text)
  if (parsed !== undefined) candidates.push(parsed)
  // Integers beyond what JSON's numbers hold are shown as text.
  const digits = typeof parsed === 'string' ? parsed : text
  if (/^-?\d+$/.test(digits)) candidates.push(BigInt(digits))
  candidates.push(text)
  for (const candidate of candidates) {
    try {
      const value = serde.json === undefined ? candidate : serde.json.read(candidate)
      const back = serde.deserialize(serde.serialize(value))
      if (sameJson(serde, back, value)) return { key: value }
    } catch {
      // The next one may be what is meant.
    }
  }
  return text.startsWith(base64) ? keyOfBytes(serde, Buffer.from(text.slice(base64.length), 'base64')) : undefined
}

function keyOfBytes(serde: Serde<unknown>, bytes: Buffer): { readonly key: unknown } | undefined {
  try {
    const key = serde.deserialize(bytes)
    return Buffer.compare(serde.serialize(key), bytes) === 0 ? { key } : undefined
  } catch {
    return undefined
  }
}

function sameJson(serde: Serde<unknown>, a: unknown, b: unknown): boolean {
  return typeof a === typeof b && JSON.stringify(shownJson(serde, a)) === JSON.stringify(shownJson(serde, b))
}

function parsedOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
