/** Reads what a program on the JVM wrote, and writes it again: one pair of topics for each schema. */
import { create, createFileRegistry, type DescMessage, type Message } from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { defineApp, type Serde } from '../../../src/index.ts'
import { avro, jsonSchema, protobuf } from '../../../src/serde/registry/index.ts'
import { files } from '../../unit/serde/registry/proto-files.ts'
import { samples } from '../../unit/serde/registry/schemas.ts'

const descriptors = files.slice(0, 2)
export const descriptorSet = create(FileDescriptorSetSchema, { file: descriptors })
export const orderType = createFileRegistry(descriptorSet).getMessage('com.acme.Order') as DescMessage

export const jsonOrder = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Order',
  type: 'object',
  required: ['id'],
  properties: {
    id: { type: 'string' },
    amount: { type: 'number' },
    tags: { type: 'array', items: { type: 'string' } },
    address: { type: ['object', 'null'], properties: { city: { type: 'string' } } },
  },
}

export interface Exchanged {
  readonly format: 'avro' | 'json' | 'protobuf'
  readonly name: string
  readonly serde: Serde<unknown>
}

const register = { register: 'on-start' } as const

export const exchanged: readonly Exchanged[] = [
  ...samples.map(({ name, schema }) => ({
    format: 'avro' as const,
    name,
    serde: avro<unknown>(schema as object, register),
  })),
  { format: 'json', name: 'Json', serde: jsonSchema<unknown>(jsonOrder, register) },
  { format: 'protobuf', name: 'Proto', serde: protobuf(orderType, register) as unknown as Serde<unknown> },
]

export type ProtoOrder = Message

const prefix = process.env.INTERCHANGE_PREFIX ?? 'interchange'

export default defineApp({
  applicationId: prefix,
  build(topology) {
    for (const { name, serde } of exchanged)
      topology.stream(`${prefix}-${name}-java`, { value: serde }).to(`${prefix}-${name}-node`, { value: serde })
  },
})
