/** Protobuf messages over a schema registry. */
import type { DescFile, DescMessage, Message, MessageShape } from '@bufbuild/protobuf'
import type { KnownSchema } from '../../schemas.ts'
import { type Serde, SerdeError } from '../../serde.ts'
import type { Codec, OwnSchema, ReadValue, ValueWriter } from '../codec.ts'
import { optionalPackage } from '../optional-package.ts'
import { descriptorText, isProtoText } from './descriptor-text.ts'
import { ProtoFunctions, type ProtobufRuntime } from './proto-functions.ts'
import { ProtoNames, readIndexes, writeIndexes } from './proto-names.ts'
import { protoText } from './proto-text.ts'
import { RegistrySerde, type RegistryOptions } from '../registry-serde.ts'

/**
 * Protobuf messages, each with the id of the file that declares it and its place therein. The types are those that
 * `@bufbuild/protoc-gen-es` generates, nested ones too. With several types a record is of one of them, and its `$typeName`
 * says of which. Fields that the application does not know are kept and written again.
 *
 * Needs the package `@bufbuild/protobuf`.
 *
 * @example
 * topology.stream('orders', { value: protobuf(OrderSchema) }).to('paid', { value: protobuf(PaidSchema, { register: 'on-start' }) })
 * @throws EngineError `APPLICATION_INVALID` when the package is missing.
 */
export function protobuf<D extends DescMessage>(
  type: D | readonly D[],
  options: RegistryOptions = {},
): Serde<MessageShape<D>> {
  const types = (Array.isArray(type) ? type : [type]) as readonly DescMessage[]
  return new RegistrySerde<MessageShape<D>>(new ProtobufCodec(types), options)
}

const wellKnown = 'google/protobuf/'

interface OwnMessage extends OwnSchema {
  readonly desc: DescMessage
  /** What stands in front of the message. */
  readonly indexes: Uint8Array
}

class ProtobufCodec implements Codec {
  readonly type = 'PROTOBUF'
  readonly name: string
  readonly own: readonly OwnMessage[]
  readonly #runtime: ProtobufRuntime
  readonly #functions: ProtoFunctions
  /** Where there is no other. */
  readonly #only: OwnMessage | undefined
  readonly #byName: ReadonlyMap<string, OwnMessage>

  constructor(types: readonly DescMessage[]) {
    this.#runtime = optionalPackage<ProtobufRuntime>('@bufbuild/protobuf', 'The Protobuf format')
    this.#functions = new ProtoFunctions(this.#runtime)
    this.own = types.map((desc) => {
      const imports = importsOf(desc.file)
      const text = protoText(desc.file.proto)
      return {
        name: desc.typeName,
        text,
        desc,
        indexes: writeIndexes(placeOf(desc)),
        ...(imports.length > 0 && { imports }),
      }
    })
    this.#only = this.own.length === 1 ? this.own[0] : undefined
    this.#byName = new Map(this.own.map((each) => [each.name, each]))
    this.name = `protobuf(${types.map(({ typeName }) => typeName).join(' | ')})`
  }

  reader(writer: KnownSchema): ReadValue {
    const names = new ProtoNames(isProtoText(writer.text) ? writer.text : descriptorText(writer.text, this.name))
    const functions = this.#functions
    const byFirst = this.#byName.get(names.at([0]) ?? '')
    return (bytes, start, end) => {
      // Of most files it is the first message.
      if (bytes[start] === 0 && byFirst !== undefined) return functions.read(byFirst.desc, bytes, start + 1, end)
      const found = readIndexes(bytes, start, end)
      const name = found && names.at(found.indexes)
      const message = name === undefined ? undefined : this.#byName.get(name)
      if (found === undefined || message === undefined) {
        throw new SerdeError(
          `The record is ${name === undefined ? 'no message of its schema' : `a ${name}`} (schema ${writer.id}), and the serde '${this.name}' reads no such message.`,
        )
      }
      return functions.read(message.desc, bytes, found.next, end)
    }
  }

  writer(known: readonly KnownSchema[]): ValueWriter {
    const functions = this.#functions
    const ids = new Map(this.own.map(({ name }, i) => [name, (known[i] as KnownSchema).id]))
    const [first] = known as [KnownSchema]
    const only = this.#only?.name
    const isOnly = (value: unknown): boolean => {
      const name = (value as Partial<Message> | null)?.$typeName
      return only !== undefined && (name === undefined || name === only)
    }
    return {
      idOf: (value) => (isOnly(value) ? first.id : (ids.get(this.#ownOf(value).name) as number)),
      write: (value, bytes, at) => {
        const { desc, indexes } = this.#ownOf(value)
        const { length } = indexes
        if (bytes.length - at < length) return bytes.length - at - length
        for (let i = 0; i < length; i++) bytes[at + i] = indexes[i] as number
        return functions.write(desc, value, bytes, at + length)
      },
    }
  }

  #ownOf(value: unknown): OwnMessage {
    const name = (value as Partial<Message> | null)?.$typeName
    const only = this.#only
    const message =
      only !== undefined && (name === undefined || name === only.name) ? only : this.#byName.get(name ?? '')
    if (message !== undefined) return message
    throw new SerdeError(
      `The serde '${this.name}' writes no ${name ?? 'value without $typeName'}; create it with one of its types.`,
    )
  }

  fromJson(value: unknown): unknown {
    const { $typeName, ...fields } = (value ?? {}) as { $typeName?: string }
    const message = $typeName === undefined ? this.own[0] : this.#byName.get($typeName)
    return message === undefined ? value : this.#runtime.fromJson(message.desc, fields)
  }

  toJson(value: unknown): unknown {
    const { desc, name } = this.#ownOf(value)
    const shown = this.#runtime.toJson(desc, value as Message)
    return this.own.length === 1 ? shown : { $typeName: name, ...(shown as object) }
  }
}

/** Where the message stands in its file, from the outside in. */
function placeOf(desc: DescMessage): number[] {
  const indexes: number[] = []
  for (let at: DescMessage | undefined = desc; at !== undefined; at = at.parent) {
    const siblings: readonly DescMessage[] = at.parent?.nestedMessages ?? at.file.messages
    indexes.unshift(siblings.indexOf(at))
  }
  return indexes
}

/** The files that a file imports, each behind those that it imports itself. */
function importsOf(file: DescFile): Array<{ name: string; text: string; uses: string[] }> {
  const found: Array<{ name: string; text: string; uses: string[] }> = []
  const visit = (each: DescFile): void => {
    const name = each.proto.name
    if (name.startsWith(wellKnown) || found.some((known) => known.name === name)) return
    for (const dependency of each.dependencies) visit(dependency)
    found.push({ name, text: protoText(each.proto), uses: usesOf(each) })
  }
  for (const dependency of file.dependencies) visit(dependency)
  return found
}

function usesOf(file: DescFile): string[] {
  return file.dependencies.map(({ proto }) => proto.name).filter((name) => !name.startsWith(wellKnown))
}
