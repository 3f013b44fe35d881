/**
 * What is wrong with a schema that is to be registered: comparisons and serdes take for granted that a schema is one. The
 * packages of the formats judge, as far as they are installed: a registry is there without them as well.
 */
import { EngineError } from '../../base/errors.ts'
import type { SchemaType } from '../schemas.ts'
import { type AvroNode, namesIn, parseAvro } from './avro/avro-schema.ts'
import { avroShapeFault } from './avro/avro-shape.ts'
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
  const fault = avroShapeFault(node)
  if (fault !== undefined) return fault
  const registry: NamedTypes = {}
  for (const each of [...references, node]) {
    // Each of them may hold the same type, as files do that were written by a tool.
    for (const declared of namesIn(each)) delete registry[declared]
    writerType(each, registry)
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
