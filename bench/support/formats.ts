/** The benchmark's event in the formats of a schema registry, beside JSON. */
import { create, createFileRegistry, type DescMessage } from '@bufbuild/protobuf'
import { FieldDescriptorProto_Type as Type, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { type Serde, serdes } from '../../src/index.ts'
import { avro, protobuf } from '../../src/serde/registry/index.ts'
import type { Event } from './events.ts'

export const formats = ['json', 'avro', 'protobuf'] as const
export type Format = (typeof formats)[number]

export interface SlowEvent extends Event {
  readonly slow: boolean
}

const fields = [
  ['user', 'string', Type.STRING],
  ['page', 'string', Type.STRING],
  ['ms', 'int', Type.INT32],
  ['ts', 'long', Type.DOUBLE],
  ['ok', 'boolean', Type.BOOL],
  ['slow', 'boolean', Type.BOOL],
] as const

function avroSchema(name: string, count: number): object {
  return { type: 'record', name, fields: fields.slice(0, count).map(([field, type]) => ({ name: field, type })) }
}

/** 64 bits would come as bigints, which JSON's numbers are not to be measured against. */
function messageOf(name: string, count: number): DescMessage {
  const file = {
    name: `${name}.proto`,
    syntax: 'proto3',
    messageType: [
      {
        name,
        field: fields
          .slice(0, count)
          .map(([field, , type], i) => ({ name: field, jsonName: field, number: i + 1, type, label: 1 })),
      },
    ],
  }
  return createFileRegistry(create(FileDescriptorSetSchema, { file: [file] })).getMessage(name) as DescMessage
}

/** What comes in, and what the workload `map` makes of it. */
export function eventSerdes(format: Format): { readonly event: Serde<Event>; readonly slow: Serde<SlowEvent> } {
  switch (format) {
    case 'avro':
      return { event: avro<Event>(avroSchema('Event', 5)), slow: avro<SlowEvent>(avroSchema('SlowEvent', 6)) }
    case 'protobuf':
      return {
        event: protobuf(messageOf('Event', 5)) as unknown as Serde<Event>,
        slow: protobuf(messageOf('SlowEvent', 6)) as unknown as Serde<SlowEvent>,
      }
    default:
      return { event: serdes.json<Event>(), slow: serdes.json<SlowEvent>() }
  }
}
