/**
 * What is wrong with a schema that is to be registered: comparisons and serdes take for granted that a schema is one. The
 * packages of the formats judge, as far as they are installed: a registry is there without them as well.
 */
import { EngineError } from '../../base/errors.ts'
import type { SchemaType } from '../schemas.ts'
import { type AvroNode, namesIn, namedTypes, parseAvro } from './avro/avro-schema.ts'
import { type NamedTypes, writerType } from './avro/avro-types.ts'
import type { ComparedSchema } from './compatibility.ts'
import { jsonSchemaFault } from './json-schema.ts'
import { descriptorText, isProtoText } from './protobuf/descriptor-text.ts'
import { parseProto } from './protobuf/proto-schema.ts'

/** Undefined: nothing. */
export function schemaFault(type: SchemaType, { text, references }: ComparedSchema): string | undefined {
  try {
    switch (type) {
      case 'AVRO':
        return avroFault(
          parseAvro(text),
          references.map((each) => parseAvro(each.text)),
        )
      case 'JSON':
        return jsonFault(JSON.parse(text))
      default:
        return protobufFault(text)
    }
  } catch (cause) {
    if (EngineError.is(cause)) return undefined
    return (cause as Error).message
  }
}

function avroFault(node: AvroNode, references: readonly AvroNode[]): string | undefined {
  const fault = shapeFault(node, 'the schema')
  if (fault !== undefined) return fault
  const registry: NamedTypes = {}
  for (const each of [...references, node]) {
    // Each of them may hold the same type, as files do that were written by a tool.
    for (const declared of namesIn(each)) delete registry[declared]
    writerType(each, registry)
  }
  return undefined
}

/** Where the JSON is not made as that of a schema is. Names, and what they stand for, the package of the format knows. */
function shapeFault(node: unknown, what: string): string | undefined {
  if (typeof node === 'string') return undefined
  if (Array.isArray(node)) {
    if (node.length === 0) return `${what} is a union of nothing`
    return firstFault(node, (branch, i) => shapeFault(branch, `branch ${i} of ${what}`))
  }
  if (typeof node !== 'object' || node === null) return `${what} is ${JSON.stringify(node)}, which is no type`
  const { type, name, fields, symbols, items, values } = node as Readonly<Record<string, unknown>>
  if (type === undefined) return `${what} has no type`
  if (typeof type !== 'string') return shapeFault(type, `the type of ${what}`)
  if (namedTypes.has(type) && typeof name !== 'string') return `${what} is of the type ${type} and has no name`
  if (type === 'record' || type === 'error') {
    if (!Array.isArray(fields)) return `${what} is a record without a list of fields`
    return firstFault(fields, (field, i) => fieldFault(field, `field ${i} of ${String(name)}`))
  }
  if (type === 'enum' && !(Array.isArray(symbols) && symbols.length > 0))
    return `the enum ${String(name)} has no symbols`
  if (type === 'array') return shapeFault(items ?? null, `what the array holds in ${what}`)
  return type === 'map' ? shapeFault(values ?? null, `what the map holds in ${what}`) : undefined
}

function fieldFault(field: unknown, what: string): string | undefined {
  const { name, type } = (field ?? {}) as Readonly<Record<string, unknown>>
  if (typeof name !== 'string') return `${what} has no name`
  return type === undefined ? `${what} has no type` : shapeFault(type, `the type of the field ${name}`)
}

function firstFault(list: readonly unknown[], faultOf: (each: unknown, i: number) => string | undefined) {
  for (const [i, each] of list.entries()) {
    const fault = faultOf(each, i)
    if (fault !== undefined) return fault
  }
  return undefined
}

function jsonFault(schema: unknown): string | undefined {
  if (typeof schema === 'boolean') return undefined
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
    return `a JSON Schema is an object, true or false, not ${JSON.stringify(schema)}`
  }
  return jsonSchemaFault(schema)
}

function protobufFault(text: string): string | undefined {
  if (isProtoText(text)) {
    parseProto(text)
    return undefined
  }
  const neither = 'it is neither the text of a .proto file nor its descriptor as base64'
  try {
    const { messages, enums } = parseProto(descriptorText(text, 'The Protobuf format'))
    return messages.size + enums.size === 0 ? neither : undefined
  } catch (cause) {
    if (EngineError.is(cause)) throw cause
    return neither
  }
}
