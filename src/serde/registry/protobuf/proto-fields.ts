/** What a field of Protobuf is made of, as far as bytes go. */
import type { DescField, DescMessage } from '@bufbuild/protobuf'

/** The numbers of `ScalarType`, which is not imported: its package is optional. An enum is an int32. */
const scalars = {
  1: 'double',
  2: 'float',
  3: 'int64',
  4: 'uint64',
  5: 'int32',
  6: 'fixed64',
  7: 'fixed32',
  8: 'bool',
  9: 'string',
  12: 'bytes',
  13: 'uint32',
  15: 'sfixed32',
  16: 'sfixed64',
  17: 'sint32',
  18: 'sint64',
} as const

export type Scalar = (typeof scalars)[keyof typeof scalars]

export function scalarOf(type: number | undefined): Scalar {
  return type === undefined ? 'int32' : scalars[type as keyof typeof scalars]
}

export const lengthDelimited = 2

export function wireTypeOf(scalar: Scalar): number {
  switch (scalar) {
    case 'double':
    case 'fixed64':
    case 'sfixed64':
      return 1
    case 'float':
    case 'fixed32':
    case 'sfixed32':
      return 5
    case 'string':
    case 'bytes':
      return lengthDelimited
    default:
      return 0
  }
}

export function tagOf(number: number, wireType: number): number {
  return ((number << 3) | wireType) >>> 0
}

export function isMapKeyLong(scalar: Scalar): boolean {
  return scalar.endsWith('64')
}

const implicit = 2
const required = 3

/** Unset is told from zero. */
export function isExplicit({ presence }: DescField): boolean {
  return presence !== implicit
}

export function isRequired({ presence }: DescField): boolean {
  return presence === required
}

/** Groups, objects of any shape, 64 bits as texts: rare, and left to the library wherever they are set. */
export function isRare(field: DescField): boolean {
  if ('delimitedEncoding' in field && field.delimitedEncoding) return true
  if ('longAsString' in field && field.longAsString) return true
  return field.message?.typeName === 'google.protobuf.Struct' && field.parent.typeName !== 'google.protobuf.Value'
}

/** Such as `StringValue`, which is its value alone where it is a field. */
export function isUnwrapped(field: DescField): boolean {
  return field.fieldKind === 'message' && field.oneof === undefined && isWrapper(field.message)
}

function isWrapper({ typeName, fields }: DescMessage): boolean {
  const [value] = fields
  return (
    /^google\.protobuf\.(Double|Float|U?Int(32|64)|Bool|String|Bytes)Value$/.test(typeName) &&
    value?.fieldKind === 'scalar' &&
    value.name === 'value' &&
    value.number === 1
  )
}

/** A name of a member in the text of a function: no literal has a member of this name. */
export const isForbidden = (name: string): boolean => name === '__proto__'
