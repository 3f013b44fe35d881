import { tryParseDuration } from '../base/duration.ts'
import type { ConfigRow } from './table-types.ts'

export type PlainValue = string | number | boolean | null | readonly string[]
export type Parsed =
  | { readonly ok: true; readonly value: PlainValue }
  | { readonly ok: false; readonly expected: string }

const good = (value: PlainValue): Parsed => ({ ok: true, value })
const bad = (expected: string): Parsed => ({ ok: false, expected })

/**
 * A value from any source as the row wants it. Text is accepted for every type, since environment and command line
 * know nothing else and YAML quotes as it likes.
 */
export function parseValue(row: ConfigRow, raw: unknown): Parsed {
  const unset = raw === null || raw === undefined || (typeof raw === 'string' && isUnsetText(row, raw))
  if (unset) return row.nullable ? good(null) : bad(`${describeType(row)}, not null`)
  switch (row.type) {
    case 'boolean':
      return parseBoolean(raw)
    case 'int':
    case 'number':
      return parseNumber(row, raw)
    case 'duration':
      return withinRange(row, tryParseDuration(raw))
    case 'bytes':
      return withinRange(row, parseBytes(raw))
    case 'enum':
      return parseEnum(row.values, row, raw)
    case 'list':
      return parseList(raw)
    case 'string':
      return parseString(row, raw)
  }
}

/** What a row accepts, in words, for fault lines and the reference page. */
export function describeType(row: ConfigRow): string {
  switch (row.type) {
    case 'boolean':
      return 'true or false'
    case 'int':
      return `an integer${range(row)}`
    case 'number':
      return `a number${range(row)}`
    case 'duration':
      return `a duration as 10s, 5m, PT1H or milliseconds${range(row, ' ms')}`
    case 'bytes':
      return `a size as 64MiB, 8KiB or bytes${range(row, ' bytes')}`
    case 'enum':
      return `one of ${row.values.join(', ')}`
    case 'list':
      return 'a list'
    case 'string':
      return row.patternDoc ?? 'text'
  }
}

function range(row: { readonly min?: number; readonly max?: number }, unit = ''): string {
  if (row.min !== undefined && row.max !== undefined) return ` from ${row.min} to ${row.max}${unit}`
  if (row.min !== undefined) return ` of at least ${row.min}${unit}`
  if (row.max !== undefined) return ` of at most ${row.max}${unit}`
  return ''
}

function isUnsetText(row: ConfigRow, text: string): boolean {
  return row.nullable === true && (text === '' || text === 'null')
}

function parseBoolean(raw: unknown): Parsed {
  if (typeof raw === 'boolean') return good(raw)
  const text = typeof raw === 'string' ? raw.trim().toLowerCase() : ''
  return text === 'true' ? good(true) : text === 'false' ? good(false) : bad('true or false')
}

function parseNumber(row: ConfigRow & { readonly type: 'int' | 'number' }, raw: unknown): Parsed {
  const text = typeof raw === 'string' ? raw.trim() : ''
  const value = typeof raw === 'number' ? raw : /^[+-]?\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (row.type === 'int' && !Number.isSafeInteger(value)) return bad(describeType(row))
  return withinRange(row, Number.isFinite(value) ? value : undefined)
}

function withinRange(row: ConfigRow & { readonly min?: number; readonly max?: number }, value?: number): Parsed {
  if (value === undefined || value < (row.min ?? -Infinity) || value > (row.max ?? Infinity)) {
    return bad(describeType(row))
  }
  return good(value)
}

const byteUnits: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  kb: 1000,
  mb: 1_000_000,
  gb: 1_000_000_000,
  kib: 1024,
  mib: 1_048_576,
  gib: 1_073_741_824,
}

function parseBytes(raw: unknown): number | undefined {
  if (typeof raw === 'number') return Number.isSafeInteger(raw) && raw >= 0 ? raw : undefined
  const parts = typeof raw === 'string' ? /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(raw.trim()) : null
  const unit = parts ? byteUnits[(parts[2] as string).toLowerCase()] : undefined
  return parts && unit !== undefined ? Math.round(Number(parts[1]) * unit) : undefined
}

function parseEnum(values: readonly string[], row: ConfigRow, raw: unknown): Parsed {
  // YAML 1.1 habits: an unquoted `off` may come in as false, and `on` as true.
  const text = raw === false ? 'off' : raw === true ? 'on' : typeof raw === 'string' ? raw.trim() : undefined
  const match = values.find((value) => value === text) ?? values.find((v) => v.toLowerCase() === text?.toLowerCase())
  return match === undefined ? bad(describeType(row)) : good(match)
}

function parseList(raw: unknown): Parsed {
  if (Array.isArray(raw)) {
    const items: string[] = []
    for (const item of raw) {
      if (typeof item !== 'string' && typeof item !== 'number') return bad('a list of texts')
      items.push(String(item))
    }
    return good(items)
  }
  if (typeof raw !== 'string') return bad('a list of texts, or text with commas')
  return good(
    raw
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
  )
}

function parseString(row: ConfigRow & { readonly type: 'string' }, raw: unknown): Parsed {
  if (typeof raw !== 'string' && typeof raw !== 'number' && typeof raw !== 'boolean') return bad(describeType(row))
  const text = String(raw)
  if (row.pattern !== undefined && !new RegExp(`^(?:${row.pattern})$`).test(text)) return bad(describeType(row))
  return good(text)
}
