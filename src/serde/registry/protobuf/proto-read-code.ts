/**
 * The text of a function that reads messages of one type. It leaves whatever is not as expected to the library, by giving
 * undefined: a wrong function could be slow, but not misread a record.
 */
import type { DescField, DescMessage } from '@bufbuild/protobuf'
import {
  isExplicit,
  isRare,
  isUnwrapped,
  lengthDelimited,
  type Scalar,
  scalarOf,
  tagOf,
  wireTypeOf,
} from './proto-fields.ts'

/** Deeper messages are the library's, which has a limit of its own. */
const deepest = 90

class Code {
  readonly starts: string[] = []
  readonly cases: string[] = []
  /** Members that every message has: a name, quoted, and what gives its value. */
  readonly members: Array<readonly [name: string, value: string]> = []
  readonly ends: string[] = []
  readonly messages = new Map<DescMessage, string>()

  child(message: DescMessage): string {
    let name = this.messages.get(message)
    if (name === undefined) {
      name = `m${this.messages.size}`
      this.messages.set(message, name)
    }
    return name
  }
}

export interface MadeText {
  readonly text: string
  /** Messages inside, by the names that the text has for what reads or writes them. */
  readonly messages: ReadonlyMap<DescMessage, string>
}

/** `zero`: a message of the type without anything in it. `hasPrototype`: its defaults lie in its prototype. */
export function readText(desc: DescMessage, zero: Readonly<Record<string, unknown>>, hasPrototype: boolean): MadeText {
  const code = new Code()
  for (const [i, oneof] of desc.oneofs.entries()) {
    code.starts.push(`let o${i}`)
    code.members.push([JSON.stringify(oneof.localName), `o${i} === undefined ? { case: undefined } : o${i}`])
  }
  for (const field of desc.fields) readField(code, desc, field, zero)
  const numbers = desc.fields.map(({ number }) => `no === ${number}`)
  code.members.unshift(['"$typeName"', JSON.stringify(desc.typeName)])
  const made = hasPrototype
    ? `Object.create(prototype); ${code.members.map(([name, value]) => `message[${name}] = ${value}`).join('; ')}`
    : `{ ${code.members.map(([name, value]) => `${name}: ${value}`).join(', ')} }`
  const text = `return (bytes, at, end, depth) => {
  if (depth > ${deepest}) return undefined
  let tag, b, length, to, child, unknown
  ${code.starts.join('\n  ')}
  while (at < end) {
    tag = bytes[at++]
    if (tag > 127) { tag = io.tag(bytes, at - 1, end); at = io.at }
    switch (tag) {
      ${code.cases.join('\n      ')}
      default: {
        const no = tag >>> 3
        if (tag < 8 || ${numbers.join(' || ') || 'false'}) return undefined
        const from = at
        switch (tag & 7) {
          case 0: b = io.varint(bytes, at, end); if (b < 0) return undefined; at = io.at; break
          case 1: at += 8; break
          case 2: ${lengthText} at = to; break
          case 5: at += 4; break
          default: return undefined
        }
        if (at > end) return undefined
        if (unknown === undefined) unknown = []
        unknown.push({ no, wireType: tag & 7, data: ownBytes(bytes, from, at) })
      }
    }
  }
  if (at !== end) return undefined
  const message = ${made}
  ${code.ends.join('\n  ')}
  if (unknown !== undefined) message.$unknown = unknown
  return message
}`
  return { text, messages: code.messages }
}

const lengthText = `length = bytes[at++]; if (length > 127) { length = io.varint(bytes, at - 1, end); at = io.at; if (length < 0) return undefined }
        to = at + length; if (to > end) return undefined;`

/** Reads one value into `target`, and moves on behind it. */
function scalarText(scalar: Scalar, target: string): string {
  const view = (method: string, size: number): string =>
    `if (at + ${size} > end) return undefined; ${target} = io.view.${method}(at, true); at += ${size};`
  const long = (method: string): string =>
    `${target} = io.${method}(bytes, at, end); if (${target} === undefined) return undefined; at = io.at;`
  const varint = (then: string): string =>
    `b = bytes[at++]; if (b > 127) { b = io.varint(bytes, at - 1, end); if (b < 0) return undefined; at = io.at } ${target} = ${then};`
  switch (scalar) {
    case 'string':
      return `${lengthText} ${target} = readText(bytes, at, to); if (${target} === undefined) return undefined; at = to;`
    case 'bytes':
      return `${lengthText} ${target} = ownBytes(bytes, at, to); at = to;`
    case 'bool':
      return `b = bytes[at++]; if (b > 127) return undefined; ${target} = b !== 0;`
    case 'int32':
      return varint('b | 0')
    case 'uint32':
      return varint('b')
    case 'sint32':
      return varint('(b >>> 1) ^ -(b & 1)')
    case 'int64':
    case 'uint64':
    case 'sint64':
      return long(scalar)
    case 'double':
      return view('getFloat64', 8)
    case 'float':
      return view('getFloat32', 4)
    case 'fixed32':
      return view('getUint32', 4)
    case 'sfixed32':
      return view('getInt32', 4)
    case 'fixed64':
      return view('getBigUint64', 8)
    default:
      return view('getBigInt64', 8)
  }
}

function messageText(name: string, target: string): string {
  return `${lengthText} ${target} = ${name}.read(bytes, at, to, depth + 1); if (${target} === undefined) return undefined; at = to;`
}

function valueText(code: Code, field: DescField, target: string): string {
  return field.message === undefined
    ? scalarText(scalarOf(field.scalar), target)
    : messageText(code.child(field.message), target)
}

function wireTypeOfField(field: DescField): number {
  return field.message === undefined ? wireTypeOf(scalarOf(field.scalar)) : lengthDelimited
}

function readField(code: Code, desc: DescMessage, field: DescField, zero: Readonly<Record<string, unknown>>): void {
  const index = desc.fields.indexOf(field)
  const target = `v${index}`
  const name = JSON.stringify(field.localName)
  const on = (wireType: number, text: string): void => {
    code.cases.push(`case ${tagOf(field.number, wireType)}: { ${text} break }`)
  }
  if (field.fieldKind === 'list') {
    code.starts.push(`let ${target}`)
    code.members.push([name, `${target} === undefined ? [] : ${target}`])
    if (!isRare(field)) listCases(code, field, target, on)
    return
  }
  if (field.fieldKind === 'map') {
    code.starts.push(`let ${target}`)
    code.members.push([name, `${target} === undefined ? {} : ${target}`])
    if (!isRare(field)) on(lengthDelimited, mapText(code, field, target))
    return
  }
  const known = isClosed(field) ? `if (!closed.f${field.number}.has(child)) return undefined;` : ''
  if (field.oneof !== undefined) {
    const oneof = `o${desc.oneofs.indexOf(field.oneof)}`
    // A message of the same case would have to be merged with the one before.
    const merged = field.message ? `if (${oneof} !== undefined && ${oneof}.case === ${name}) return undefined;` : ''
    if (!isRare(field))
      on(
        wireTypeOfField(field),
        `${merged} ${valueText(code, field, 'child')} ${known} ${oneof} = { case: ${name}, value: child };`,
      )
    return
  }
  if (field.fieldKind === 'message' || isExplicit(field)) {
    code.starts.push(`let ${target}`)
    code.ends.push(`if (${target} !== undefined) message[${name}] = ${target}`)
  } else if (scalarOf(field.scalar) === 'bytes') {
    code.starts.push(`let ${target}`)
    code.members.push([name, `${target} === undefined ? new Uint8Array(0) : ${target}`])
  } else {
    code.starts.push(`let ${target} = ${literal(zero[field.localName])}`)
    code.members.push([name, target])
  }
  if (isRare(field)) return
  const twice = field.message === undefined ? '' : `if (${target} !== undefined) return undefined;`
  const unwrapped = isUnwrapped(field)
    ? `if (${target}.$unknown !== undefined) return undefined; ${target} = ${target}.value;`
    : ''
  const text = valueText(code, field, known === '' ? target : 'child')
  on(wireTypeOfField(field), `${twice} ${text} ${unwrapped} ${known && `${known} ${target} = child;`}`)
}

function listCases(code: Code, field: DescField, target: string, on: (wireType: number, text: string) => void): void {
  const start = `if (${target} === undefined) ${target} = [];`
  const wireType = wireTypeOfField(field)
  on(wireType, `${valueText(code, field, 'child')} ${start} ${target}.push(child);`)
  if (wireType === lengthDelimited) return
  const scalar = scalarOf(field.scalar)
  on(
    lengthDelimited,
    `${lengthText} ${start} const last = to; while (at < last) { ${scalarText(scalar, 'child')} ${target}.push(child) } if (at !== last) return undefined;`,
  )
}

function mapText(code: Code, field: DescField & { fieldKind: 'map' }, target: string): string {
  const key = scalarOf(field.mapKey)
  const value = valueText(code, field, 'value')
  const none = field.message
    ? 'return undefined'
    : scalarOf(field.scalar) === 'bytes'
      ? 'value = new Uint8Array(0)'
      : `value = ${literal(mapZero(field))}`
  const twice = field.message ? 'if (value !== undefined) return undefined;' : ''
  return `${lengthText} const last = to; let key, value;
        while (at < last) {
          tag = bytes[at++]
          if (tag === ${tagOf(1, wireTypeOf(key))}) { ${scalarText(key, 'key')} }
          else if (tag === ${tagOf(2, wireTypeOfField(field))}) { ${twice} ${value} }
          else return undefined
        }
        if (at !== last || key === '__proto__') return undefined
        if (key === undefined) key = ${literal(scalarZero(key))}
        if (value === undefined) ${none}
        if (${target} === undefined) ${target} = {}
        ${target}[key] = value;`
}

function mapZero(field: DescField & { fieldKind: 'map' }): unknown {
  return field.mapKind === 'enum' ? field.enum.values[0]?.number : scalarZero(scalarOf(field.scalar))
}

function scalarZero(scalar: Scalar): unknown {
  if (scalar === 'string') return ''
  if (scalar === 'bool') return false
  return scalar.endsWith('64') ? 0n : 0
}

/** Numbers that a closed enum does not know are unknown fields. */
export function isClosed(field: DescField): boolean {
  return field.fieldKind === 'enum' && !field.enum.open
}

function literal(value: unknown): string {
  return typeof value === 'bigint' ? `${value}n` : JSON.stringify(value)
}
