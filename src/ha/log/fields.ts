/** Reads fields of JSON that anybody may have written: a value of the wrong kind, or out of range, is no value. */
import { isPlainObject } from './json.ts'

export type Fields = Readonly<Record<string, unknown>>

const own = (o: Fields, name: string): unknown => (Object.hasOwn(o, name) ? o[name] : undefined)

export function textOf(o: Fields, name: string, longest: number): string | undefined {
  const value = own(o, name)
  return typeof value === 'string' && value.length <= longest ? value : undefined
}

/** A whole number from `least` on; beyond what JavaScript counts exactly there is none. */
export function wholeOf(o: Fields, name: string, least = 0): number | undefined {
  const value = own(o, name)
  return Number.isSafeInteger(value) && (value as number) >= least ? (value as number) : undefined
}

export function flagOf(o: Fields, name: string): boolean | undefined {
  const value = own(o, name)
  return typeof value === 'boolean' ? value : undefined
}

/** The value if it is one of those known; `UNKNOWN` for another text, which a newer build may have written. */
export function oneOf<T extends string>(o: Fields, name: string, known: readonly T[]): T | 'UNKNOWN' | undefined {
  const value = own(o, name)
  if (typeof value !== 'string') return undefined
  return known.find((each) => each === value) ?? 'UNKNOWN'
}

export function listOf(o: Fields, name: string, longest: number): readonly unknown[] {
  const value = own(o, name)
  return Array.isArray(value) ? value.slice(0, longest) : []
}

/** A map of short texts; what does not fit is left out. */
export function textsOf(o: Fields, name: string, most: number): ReadonlyMap<string, string> {
  const value = own(o, name)
  const result = new Map<string, string>()
  if (!isPlainObject(value)) return result
  for (const key of Object.keys(value)) {
    const text = textOf(value, key, 128)
    if (text !== undefined && key.length <= 128 && result.size < most) result.set(key, text)
  }
  return result
}
