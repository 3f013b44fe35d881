/** Protobuf without a schema registry: the bytes are the message. */
import type { DescMessage } from '@bufbuild/protobuf'
import { optionalPackage } from '../registry/optional-package.ts'
import { ProtoFunctions, type ProtobufRuntime } from '../registry/protobuf/proto-functions.ts'
import type { Serde } from '../serde.ts'
import { SerdeError } from '../serde.ts'
import { PlainSerde } from './plain-serde.ts'

/**
 * A message type as `@bufbuild/protoc-gen-es` generates it. Only what it is known by stands here, so that the types of
 * Millrace need no package that an application may not have.
 */
export interface ProtobufType {
  /** What a descriptor of a message says of itself. */
  readonly kind: 'message'
  /** With its package: `com.acme.Order`. */
  readonly typeName: string
  /** Descriptors of its fields. */
  readonly fields: readonly unknown[]
}

/** Behind `serdes.protobuf`. */
export function plainProtobuf<T>(type: ProtobufType): Serde<T> {
  const runtime = optionalPackage<ProtobufRuntime>('@bufbuild/protobuf', 'The Protobuf format')
  const desc = type as DescMessage
  const name = `protobuf(${desc.typeName})`
  const functions = new ProtoFunctions(runtime)
  return new PlainSerde<T>({
    name,
    read: (bytes, start, end) => functions.read(desc, bytes, start, end),
    write: (value, bytes, at) => {
      const found = (value as { $typeName?: unknown } | null)?.$typeName ?? desc.typeName
      if (typeof value === 'object' && value !== null && found === desc.typeName)
        return functions.write(desc, value, bytes, at)
      throw new SerdeError(`The serde '${name}' writes no ${typeof value === 'object' ? String(found) : typeof value}.`)
    },
    fromJson: (value) => runtime.fromJson(desc, withoutTypeName(value) as never),
    toJson: (value) => runtime.toJson(desc, value as never),
  })
}

function withoutTypeName(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('$typeName' in value)) return value
  const { $typeName: _, ...fields } = value
  return fields
}
