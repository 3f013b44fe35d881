/** Whether what is written with one schema of a format is read with another: each format has its rules. */
import type { SchemaType } from '../schemas.ts'
import { avroProblems } from './avro/avro-compatibility.ts'
import { canonicalAvro, parseAvro } from './avro/avro-schema.ts'
import { jsonSchemaProblems } from './json-compatibility.ts'
import { protobufProblems } from './protobuf/proto-compatibility.ts'
import { ProtoNames } from './protobuf/proto-names.ts'
import { parseProto, type ProtoSchema } from './protobuf/proto-schema.ts'

/** A text, with those that it refers to. */
export interface ComparedSchema {
  readonly text: string
  readonly references: ReadonlyArray<{ readonly name: string; readonly text: string }>
}

/** Why `reader` cannot read what was written with `writer`, in sentences that name the field; empty: it can. */
export function schemaProblems(type: SchemaType, reader: ComparedSchema, writer: ComparedSchema): string[] {
  const references = [...writer.references, ...reader.references]
  switch (type) {
    case 'AVRO':
      return avroProblems(
        parseAvro(reader.text),
        parseAvro(writer.text),
        references.map(({ text }) => parseAvro(text)),
      )
    case 'JSON': {
      const named = references.map(({ name, text }) => [name, JSON.parse(text) as unknown] as const)
      return jsonSchemaProblems(JSON.parse(reader.text), JSON.parse(writer.text), Object.fromEntries(named))
    }
    default: {
      const [own, theirs] = [parsed(reader), parsed(writer)]
      return own === undefined || theirs === undefined ? [] : protobufProblems(own, theirs)
    }
  }
}

/** Undefined for what is no text, as some producers register the descriptor itself; only the registry can judge that. */
function parsed({ text, references }: ComparedSchema): ProtoSchema | undefined {
  try {
    return parseProto(
      text,
      references.map((each) => each.text),
    )
  } catch {
    return undefined
  }
}

/**
 * Whether bytes of the one are read as those of the other. Registries write texts anew in their own way, so that texts which
 * differ may be one schema. JSON is read without its schema.
 */
export function isReadAlike(type: SchemaType, a: string, b: string): boolean {
  if (a === b || type === 'JSON') return true
  try {
    if (type === 'PROTOBUF') return new ProtoNames(a).all.join() === new ProtoNames(b).all.join()
    return JSON.stringify(canonicalAvro(parseAvro(a))) === JSON.stringify(canonicalAvro(parseAvro(b)))
  } catch {
    return false
  }
}
