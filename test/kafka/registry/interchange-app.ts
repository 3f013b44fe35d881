/** Reads what a program on the JVM wrote, and writes it again: one pair of topics for each schema. */
import type fc from 'fast-check'
import { defineApp, type Serde } from '../../../src/index.ts'
import { avro, jsonSchema, protobuf } from '../../../src/serde/registry/index.ts'
import { samples } from '../../unit/serde/registry/schemas.ts'
import { jsonSamples } from './interchange-json.ts'
import { protoSamples } from './interchange-protobuf.ts'

export interface Exchanged {
  readonly format: 'avro' | 'json' | 'protobuf'
  readonly name: string
  readonly serde: Serde<unknown>
  readonly values: fc.Arbitrary<unknown>
  /** Values that are exchanged in any case, in front of those at random. */
  readonly edges: readonly unknown[]
}

const register = { register: 'on-start' } as const

export const exchanged: readonly Exchanged[] = [
  ...samples.map(({ name, schema, values }) => ({
    format: 'avro' as const,
    name,
    serde: avro<unknown>(schema as object, register),
    values,
    edges: [],
  })),
  ...jsonSamples.map(({ name, schema, references, values, edges = [] }) => ({
    format: 'json' as const,
    name,
    serde: jsonSchema<unknown>(schema, { ...register, ...(references && { references }) }),
    values,
    edges,
  })),
  ...protoSamples.map(({ name, types, values, edges }) => ({
    format: 'protobuf' as const,
    name,
    serde: protobuf(types, register) as unknown as Serde<unknown>,
    values,
    edges,
  })),
]

const prefix = process.env.INTERCHANGE_PREFIX ?? 'interchange'

export default defineApp({
  applicationId: prefix,
  build(topology) {
    for (const { name, serde } of exchanged)
      topology.stream(`${prefix}-${name}-java`, { value: serde }).to(`${prefix}-${name}-node`, { value: serde })
  },
})
