/**
 * The text of a function that writes messages of one type, field by field in the order of their numbers, as the library
 * does. A value that is not exactly of its type is left to the library, which converts or refuses it.
 */
import type { DescField, DescMessage } from '@bufbuild/protobuf'
import {
  isExplicit,
  isMapKeyLong,
  isRare,
  isRequired,
  isUnwrapped,
  lengthDelimited,
  type Scalar,
  scalarOf,
  tagOf,
  wireTypeOf,
} from './proto-fields.ts'
import type { MadeText } from './proto-read-code.ts'

/** More than any tag with any number takes. */
const mostOfNumber = 15

type Names = (message: DescMessage) => string

/**
 * A body that returns `(value, bytes, at, end, init) => at`. `init`: the value is no message yet, but what one is made of,
 * of which any part may be missing.
 */
export function writeText(desc: DescMessage): MadeText {
  const messages = new Map<DescMessage, string>()
  const nameOf: Names = (message) => {
    const name = messages.get(message) ?? `m${messages.size}`
    messages.set(message, name)
    return name
  }
  const fields = [...desc.fields].sort((a, b) => a.number - b.number)
  const oneofs = desc.oneofs.map(
    ({ localName }, i) => `let o${i} = value[${JSON.stringify(localName)}]
  if (o${i} === undefined || o${i} === null) { if (!init) return notSimple; o${i} = none }`,
  )
  const text = `return (value, bytes, at, end, init) => {
  if (typeof value !== 'object' || value === null) return notSimple
  let isNew = init
  if (value.$typeName === ${JSON.stringify(desc.typeName)}) isNew = false
  else if (!init || value.$typeName !== undefined || Array.isArray(value)) return notSimple
  let v, lengthAt, to
  ${oneofs.join('\n  ').replaceAll('!init', '!isNew')}
  ${fields.map((field) => fieldText(desc, field, nameOf)).join('\n  ')}
  v = value.$unknown
  if (v !== undefined && !isNew) { at = writeUnknown(bytes, at, end, v); if (at < 0) return at }
  return at
}`
  return { text, messages }
}

function fieldText(desc: DescMessage, field: DescField, nameOf: Names): string {
  const name = JSON.stringify(field.localName)
  if (field.oneof !== undefined) {
    const oneof = `o${desc.oneofs.indexOf(field.oneof)}`
    const write = isRare(field) ? 'return notSimple' : `v = ${oneof}.value; ${valueText(field, 'v', nameOf)}`
    return `if (${oneof}.case === ${name}) { ${write} }`
  }
  const read = `v = value[${name}]`
  if (field.fieldKind === 'list' || field.fieldKind === 'map') {
    const write = isRare(field)
      ? 'return notSimple'
      : field.fieldKind === 'list'
        ? listText(field, nameOf)
        : mapText(field, nameOf)
    const isEmpty = field.fieldKind === 'list' ? '!Array.isArray(v)' : "typeof v !== 'object' || Array.isArray(v)"
    const some = field.fieldKind === 'list' ? 'v.length > 0' : 'true'
    return `${read}; if (v === undefined || v === null) { if (!isNew) return notSimple } else if (${isEmpty}) return notSimple; else if (${some}) { ${write} }`
  }
  const write = isRare(field) ? 'return notSimple' : valueText(field, 'v', nameOf)
  if (field.fieldKind === 'message' || isExplicit(field)) {
    // A default in the prototype is not set; what a message is made of may have null for nothing.
    const isSet = `v !== undefined && (isNew ? v !== null : Object.hasOwn(value, ${name}))`
    return `${read}; if (${isSet}) { ${write} }${isRequired(field) ? ' else return notSimple' : ''}`
  }
  const scalar = scalarOf(field.scalar)
  return `${read}; if (v === undefined || v === null) { if (!isNew) return notSimple } else if (${isNotZero(scalar)}) { ${write} }`
}

function isNotZero(scalar: Scalar): string {
  switch (scalar) {
    case 'string':
      return "v !== ''"
    case 'bytes':
      return '!(v instanceof Uint8Array) || v.length > 0'
    case 'bool':
      return 'v !== false'
    case 'double':
    case 'float':
      return '!Object.is(v, 0)'
    default:
      return scalar.endsWith('64') ? 'v !== 0n' : 'v !== 0'
  }
}

/** A tag, for which there is room. */
function tagText(number: number, wireType: number): string {
  const tag = tagOf(number, wireType)
  return tag < 128 ? `bytes[at++] = ${tag};` : `at = writeVarint(bytes, at, ${tag});`
}

function valueText(field: DescField, value: string, nameOf: Names): string {
  const room = `if (at + ${mostOfNumber} > end) return noRoom;`
  if (field.message === undefined) {
    const scalar = scalarOf(field.scalar)
    return `${room} ${tagText(field.number, wireTypeOf(scalar))} ${scalarText(scalar, value)}`
  }
  return `${room} ${tagText(field.number, lengthDelimited)} ${messageText(field, value, nameOf)}`
}

function messageText(field: DescField, value: string, nameOf: Names): string {
  const { typeName } = field.message as DescMessage
  const given = isUnwrapped(field) ? `{ $typeName: ${JSON.stringify(typeName)}, value: ${value} }` : value
  return `to = ${nameOf(field.message as DescMessage)}.write(${given}, bytes, at + 1, end, isNew); if (to < 0) return to
    at = writeLength(bytes, at, to, end); if (at < 0) return at;`
}

/** A value for which there is room, as far as it is a number; one that is not exactly of its type ends it. */
function scalarText(scalar: Scalar, v: string): string {
  const checked = (isRight: string, write: string): string => `if (!(${isRight})) return notSimple; ${write}`
  const view = (isRight: string, method: string, size: number): string =>
    checked(isRight, `io.view.${method}(at, ${v}, true); at += ${size};`)
  const int32 = `typeof ${v} === 'number' && (${v} | 0) === ${v}`
  const uint32 = `typeof ${v} === 'number' && (${v} >>> 0) === ${v}`
  switch (scalar) {
    case 'string':
      return checked(`typeof ${v} === 'string'`, `at = writeText(bytes, at, end, ${v}); if (at < 0) return at;`)
    case 'bytes':
      return checked(`${v} instanceof Uint8Array`, `at = writeBytes(bytes, at, end, ${v}); if (at < 0) return at;`)
    case 'bool':
      return checked(`typeof ${v} === 'boolean'`, `bytes[at++] = ${v} ? 1 : 0;`)
    case 'int32':
      return checked(int32, `if (${v} >= 0 && ${v} < 128) bytes[at++] = ${v}; else at = writeInt32(bytes, at, ${v});`)
    case 'uint32':
      return checked(uint32, `at = writeVarint(bytes, at, ${v});`)
    case 'sint32':
      return checked(int32, `at = writeVarint(bytes, at, ((${v} << 1) ^ (${v} >> 31)) >>> 0);`)
    case 'int64':
      return checked(`isInt64(${v})`, `at = writeInt64(bytes, at, ${v});`)
    case 'uint64':
      return checked(`isUint64(${v})`, `at = writeInt64(bytes, at, ${v});`)
    case 'sint64':
      return checked(`isInt64(${v})`, `at = writeSint64(bytes, at, ${v});`)
    case 'double':
      return view(`typeof ${v} === 'number'`, 'setFloat64', 8)
    case 'float':
      return view(`isFloat(${v})`, 'setFloat32', 4)
    case 'fixed32':
      return view(uint32, 'setUint32', 4)
    case 'sfixed32':
      return view(int32, 'setInt32', 4)
    case 'fixed64':
      return view(`isUint64(${v})`, 'setBigUint64', 8)
    default:
      return view(`isInt64(${v})`, 'setBigInt64', 8)
  }
}

function listText(field: DescField & { fieldKind: 'list' }, nameOf: Names): string {
  if (!field.packed)
    return `const list = v; for (let i = 0; i < list.length; i++) { v = list[i]; ${valueText(field, 'v', nameOf)} }`
  const room = `if (at + ${mostOfNumber} > end) return noRoom;`
  return `${room} ${tagText(field.number, lengthDelimited)} const list = v; const from = at++
    for (let i = 0; i < list.length; i++) { v = list[i]; ${room} ${scalarText(scalarOf(field.scalar), 'v')} }
    at = writeLength(bytes, from, at, end); if (at < 0) return at;`
}

function mapText(field: DescField & { fieldKind: 'map' }, nameOf: Names): string {
  const room = `if (at + ${mostOfNumber} > end) return noRoom;`
  const key = scalarOf(field.mapKey)
  const keyOf =
    key === 'string'
      ? 'k = name'
      : key === 'bool'
        ? "k = name === 'true' ? true : name === 'false' ? false : undefined"
        : `k = mapKey(name, ${isMapKeyLong(key)})`
  const scalar = scalarOf(field.scalar)
  const value = field.message
    ? `${room} ${tagText(2, lengthDelimited)} ${messageText(field, 'v', nameOf)}`
    : `${room} ${tagText(2, wireTypeOf(scalar))} ${scalarText(scalar, 'v')}`
  return `const map = v; let k
    for (const name of Object.keys(map)) {
      ${keyOf}; v = map[name]
      ${room} ${tagText(field.number, lengthDelimited)} const from = at++
      ${tagText(1, wireTypeOf(key))} ${scalarText(key, 'k')}
      ${value}
      at = writeLength(bytes, from, at, end); if (at < 0) return at
    }`
}
