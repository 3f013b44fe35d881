/** Serdes for records that carry the id of a schema in a registry: `millrace/registry`. */
export { type AvroOptions, type AvroSchemaInput, avro } from './avro/avro.ts'
export { EmbeddedRegistry, type RegistryContents } from './embedded-registry.ts'
export { type JsonSchemaOptions, jsonSchema } from './json-schema.ts'
export { protobuf } from './protobuf/protobuf.ts'
export type { RegistryOptions } from './registry-serde.ts'
export type { RegisterPolicy, SchemaType } from '../schemas.ts'
