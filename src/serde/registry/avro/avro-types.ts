/** The types of Avro as TypeScript sees them: how avsc is told of 64 bits, decimals, dates and the like. */
import type { schema as AvroSchema, Type, types } from 'avsc'
import { SerdeError } from '../../serde.ts'
import { boundedTypes } from './avro-blocks.ts'
import { safeLong } from './avro-long.ts'
import { type AvroNode, withoutDefaults } from './avro-schema.ts'
import { type Scalars, strictScalars } from './avro-scalars.ts'
import { fittingUnions } from './avro-unions.ts'
import { optionalPackage } from '../optional-package.ts'

export type Avsc = typeof import('avsc')

export interface AvroTypeOptions {
  /** `number` (default) refuses what a number does not hold exactly, `bigint` holds all 64 bits. */
  readonly longs?: 'number' | 'bigint'
}

let loaded: Avsc | undefined

export function avsc(): Avsc {
  loaded ??= optionalPackage<Avsc>('avsc', 'The Avro format')
  return loaded
}

const dayMs = 86_400_000

interface LogicalSchema {
  readonly precision?: number
  readonly scale?: number
}

type LogicalClass = new (schema: AvroSchema.AvroSchema, options?: never) => types.LogicalType

/** What avsc calls of a logical type: the part that its declarations leave out. */
interface Underlying {
  readonly underlyingType: Type
}

/** A logical type between what avsc reads and what the application sees. */
function logicalClass(
  from: (raw: never, schema: LogicalSchema) => unknown,
  to: (value: never, schema: LogicalSchema) => unknown,
): LogicalClass {
  const { LogicalType } = avsc().types
  return class extends LogicalType {
    readonly #schema: LogicalSchema

    constructor(schema: AvroSchema.AvroSchema, options?: never) {
      super(schema, options)
      this.#schema = schema as LogicalSchema
    }

    override _fromValue(raw: unknown): unknown {
      return from(raw as never, this.#schema)
    }

    override _toValue(value: unknown): unknown {
      return to(value as never, this.#schema)
    }

    /**
     * Written with the type below, whatever was said of it. What would have to become that type first is no such value: the
     * characters of a text are no digits of a decimal.
     */
    _update(resolver: { _read: unknown }, writer: Type, options: object): void {
      const { underlyingType } = this as unknown as Underlying
      if (writer.typeName !== underlyingType.typeName) return
      const inner = underlyingType.createResolver(writer, options) as unknown as { _read(tap: unknown): unknown }
      resolver._read = (tap: unknown) => this._fromValue(inner._read(tap))
    }
  } as unknown as LogicalClass
}

function dateOf(days: number): string {
  return new Date(days * dayMs).toISOString().slice(0, -14)
}

/** `Date.parse` takes February 30 for March 2, and a year for its first day. */
function daysOf(text: unknown): number {
  const days = typeof text === 'string' ? Date.parse(`${text}T00:00:00Z`) / dayMs : Number.NaN
  if (Number.isInteger(days) && dateOf(days) === text) return days
  throw new SerdeError(`${String(text)} is no date; write it as 2026-01-31`)
}

/** The digits of a decimal, two's complement and big-endian, as text with `scale` digits behind the point. */
export function decimalText(bytes: Uint8Array, scale: number): string {
  let unscaled = 0n
  for (const byte of bytes) unscaled = (unscaled << 8n) | BigInt(byte)
  if (bytes.length > 0 && (bytes[0] as number) > 127) unscaled -= 1n << BigInt(8 * bytes.length)
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0')
  const sign = unscaled < 0n ? '-' : ''
  return scale === 0 ? sign + digits : `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

const decimalPattern = /^(-?)(\d+)(?:\.(\d+))?$/

/** The fewest bytes that hold it. */
export function decimalBytes(text: unknown, { precision, scale = 0 }: LogicalSchema): Buffer {
  const found = decimalPattern.exec(String(text))
  const decimals = (found?.[3] ?? '').replace(/0+$/, '')
  if (!found || decimals.length > scale)
    throw new SerdeError(`${String(text)} is no decimal with at most ${scale} digits behind the point`)
  const digits = `${found[2]}${decimals.padEnd(scale, '0')}`.replace(/^0+(?=.)/, '')
  if (precision !== undefined && digits.length > precision)
    throw new SerdeError(`${String(text)} has more than the ${precision} digits of its type`)
  let unscaled = BigInt(digits) * (found[1] === '-' ? -1n : 1n)
  const bytes: number[] = []
  do {
    bytes.unshift(Number(BigInt.asUintN(8, unscaled)))
    unscaled >>= 8n
  } while (!((unscaled === 0n && bytes[0]! < 128) || (unscaled === -1n && bytes[0]! > 127)))
  return Buffer.from(bytes)
}

/** Decimals in a type of fixed size are filled up with their sign. */
function filled(bytes: Buffer, size: number): Buffer {
  if (bytes.length > size) throw new SerdeError(`a decimal does not fit into the ${size} bytes of its type`)
  const sign = bytes.length > 0 && (bytes[0] as number) > 127 ? 255 : 0
  return Buffer.concat([Buffer.alloc(size - bytes.length, sign), bytes])
}

interface AvroDuration {
  readonly months: number
  readonly days: number
  readonly milliseconds: number
}

function durationOf(raw: Buffer): AvroDuration {
  return { months: raw.readUInt32LE(0), days: raw.readUInt32LE(4), milliseconds: raw.readUInt32LE(8) }
}

function durationBytes({ months, days, milliseconds }: AvroDuration): Buffer {
  // A buffer takes what is missing for zero, and the whole part of a fraction.
  if (![months, days, milliseconds].every((part) => part >>> 0 === part))
    throw new SerdeError('a duration is whole numbers of months, days and milliseconds')
  const raw = Buffer.alloc(12)
  raw.writeUInt32LE(months, 0)
  raw.writeUInt32LE(days, 4)
  raw.writeUInt32LE(milliseconds, 8)
  return raw
}

/** 64 bits as a bigint. */
function bigLong(): types.LongType {
  return avsc().types.LongType.__with({
    fromBuffer: (bytes: Buffer) => bytes.readBigInt64LE(),
    toBuffer: (value: bigint) => {
      const bytes = Buffer.allocUnsafe(8)
      bytes.writeBigInt64LE(value)
      return bytes
    },
    fromJSON: BigInt,
    toJSON: Number,
    isValid: (value: unknown) => typeof value === 'bigint' && BigInt.asIntN(64, value) === value,
    compare: (a: bigint, b: bigint) => (a === b ? 0 : a < b ? -1 : 1),
  })
}

/** The classes by the names of the specification. What is left out is seen as the type below it. */
function logicalTypes(): Record<string, LogicalClass> {
  const decimal = logicalClass(
    (raw: Buffer, schema) => decimalText(raw, schema.scale ?? 0),
    (text, schema) => {
      const bytes = decimalBytes(text, schema)
      const { size } = schema as { size?: number }
      return size === undefined ? bytes : filled(bytes, size)
    },
  )
  return {
    decimal,
    date: logicalClass(dateOf, daysOf),
    duration: logicalClass(durationOf, durationBytes),
  }
}

/** Kept by avsc under the names of named types, so that a later schema finds those of an earlier one. */
export type NamedTypes = Record<string, Type>

/** What takes the place of the library's own types. */
interface Replacements extends Scalars {
  readonly safe: Type
  readonly union: (branches: readonly unknown[], options: object) => Type
  readonly array: new (schema: unknown, options: unknown) => Type
  readonly map: new (schema: unknown, options: unknown) => Type
}

let replacements: Replacements | undefined

function replaced(): Replacements {
  const library = avsc()
  const { types } = library
  replacements ??= {
    safe: safeLong(types),
    union: fittingUnions(library as never),
    ...boundedTypes(types),
    ...strictScalars(types as never),
  }
  return replacements
}

/** Milliseconds are numbers everywhere in this engine, whatever other longs are. */
const inMillis = new Set(['timestamp-millis', 'local-timestamp-millis'])

type LogicalClasses = Readonly<Record<string, LogicalClass>>

function typeOf(schema: unknown, long: Type, logicalTypes: LogicalClasses, registry: NamedTypes): Type {
  const { safe, array: StrictArray, map: StrictMap, fixed: StrictFixed, union, ...scalars } = replaced()
  registry.long ??= long
  for (const name of ['string', 'bytes', 'float', 'double'] as const) registry[name] ??= scalars[name]
  const typeHook = (
    node: readonly unknown[] | { readonly type?: unknown; readonly logicalType?: string },
    options: object,
  ): Type | undefined => {
    if (isBranches(node)) return union(node, options)
    const { type, logicalType = '' } = node
    // What lies below a logical type is made by the library: it gets and gives no value of the application.
    if (Object.hasOwn(logicalTypes, logicalType)) return undefined
    switch (type) {
      case 'long':
        return inMillis.has(logicalType) ? safe : long
      case 'string':
      case 'bytes':
      case 'float':
      case 'double':
        return scalars[type]
      case 'fixed':
        return new StrictFixed(node, options)
      case 'array':
        return new StrictArray(node, options)
      case 'map':
        return new StrictMap(node, options)
      default:
        return undefined
    }
  }
  const settings = { registry, typeHook, omitRecordMethods: true, logicalTypes }
  const type = avsc().Type.forSchema(schema as AvroSchema.AvroSchema, settings as never)
  plainObjects(type, new Set())
  return type
}

function isBranches(node: unknown): node is readonly unknown[] {
  return Array.isArray(node)
}

/** A type for values of the application: with its logical types. */
export function applicationType(schema: unknown, { longs }: AvroTypeOptions, registry: NamedTypes = {}): Type {
  const long = longs === 'bigint' ? (bigLong() as unknown as Type) : replaced().safe
  return typeOf(schema, long, logicalTypes(), registry)
}

/** A type for what others wrote: as it lies in the bytes. */
export function writerType(schema: AvroNode, registry: NamedTypes = {}): Type {
  return typeOf(withoutDefaults(schema), replaced().safe, {}, registry)
}

/**
 * Records, and values with the name of their branch, come as objects of a class: given the prototype of all objects they are
 * like any other. Names are looked up in objects that have members such as `constructor`: those are no symbols.
 */
function plainObjects(type: Type, seen: Set<Type>): void {
  if (seen.has(type)) return
  seen.add(type)
  const parts = type as unknown as {
    readonly recordConstructor?: { prototype: object }
    readonly _branchConstructor?: { prototype: object } | null
    readonly _indices?: object
    readonly _branchIndices?: object
    readonly fields?: ReadonlyArray<{ readonly type: Type }>
    readonly itemsType?: Type
    readonly valuesType?: Type
    readonly types?: readonly Type[]
    readonly underlyingType?: Type
  }
  for (const made of [parts.recordConstructor, parts.types ? null : parts._branchConstructor])
    if (made) made.prototype = Object.prototype
  for (const names of [parts._indices, parts._branchIndices])
    if (names !== undefined) Object.setPrototypeOf(names, null)
  for (const field of parts.fields ?? []) plainObjects(field.type, seen)
  for (const inner of [parts.itemsType, parts.valuesType, parts.underlyingType, ...(parts.types ?? [])])
    if (inner !== undefined) plainObjects(inner, seen)
}
