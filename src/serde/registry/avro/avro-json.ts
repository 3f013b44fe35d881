/** Values of Avro types as people write them in JSON: whole numbers for bigints, base64 for bytes, absent for null. */
import type { Type } from 'avsc'

interface Parts {
  readonly typeName: string
  readonly fields?: ReadonlyArray<{ readonly name: string; readonly type: Type; defaultValue(): unknown }>
  readonly itemsType?: Type
  readonly valuesType?: Type
  readonly types?: readonly Type[]
  readonly branchName?: string
  readonly underlyingType?: Type
}

export function avroFromJson(type: Type, value: unknown): unknown {
  const parts = type as unknown as Parts
  switch (parts.typeName) {
    case 'abstract:long':
      return typeof value === 'number' || typeof value === 'string' ? BigInt(value) : value
    case 'bytes':
    case 'fixed':
      return typeof value === 'string' ? Buffer.from(value, 'base64') : value
    case 'array':
      return Array.isArray(value) ? value.map((item) => avroFromJson(parts.itemsType as Type, item)) : value
    case 'map':
      return isObject(value) ? mapped(value, (inner) => avroFromJson(parts.valuesType as Type, inner)) : value
    case 'record':
    case 'error':
      return isObject(value) ? recordFromJson(parts, value) : value
    case 'union:unwrapped':
      return unwrapped(parts.types ?? [], value)
    case 'union:wrapped':
      return wrapped(parts.types ?? [], value)
    default:
      return value
  }
}

function recordFromJson({ fields = [] }: Parts, value: Readonly<Record<string, unknown>>): unknown {
  const record: Record<string, unknown> = {}
  for (const field of fields) {
    const given = value[field.name]
    record[field.name] = given === undefined ? absent(field) : avroFromJson(field.type, given)
  }
  return record
}

/** What a field is that nobody gave: its default, else null where it may be null. */
function absent(field: NonNullable<Parts['fields']>[number]): unknown {
  const byDefault = field.defaultValue()
  return byDefault === undefined && field.type.isValid(null) ? null : byDefault
}

function unwrapped(types: readonly Type[], value: unknown): unknown {
  if (value === null) return null
  for (const type of types) {
    const candidate = attempt(type, value)
    if (candidate !== undefined && type.isValid(candidate)) return candidate
  }
  return value
}

function attempt(type: Type, value: unknown): unknown {
  try {
    return avroFromJson(type, value)
  } catch {
    return undefined
  }
}

function wrapped(types: readonly Type[], value: unknown): unknown {
  if (!isObject(value)) return value
  const [name, ...others] = Object.keys(value)
  const branch = types.find((type) => (type as unknown as Parts).branchName === name)
  if (name === undefined || others.length > 0 || branch === undefined) return value
  return { [name]: avroFromJson(branch, value[name]) }
}

/** Bytes as base64; the rest is what JSON can show. */
export function jsonOfBytes(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
  if (Array.isArray(value)) return value.map(jsonOfBytes)
  return isObject(value) ? mapped(value, jsonOfBytes) : value
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
}

function mapped(value: Readonly<Record<string, unknown>>, change: (inner: unknown) => unknown): unknown {
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, change(inner)]))
}
