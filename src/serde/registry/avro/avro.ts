/** Avro records over a schema registry. */
import type { Type } from 'avsc'
import { EngineError } from '../../../base/errors.ts'
import type { KnownSchema } from '../../schemas.ts'
import { type Serde, SerdeError } from '../../serde.ts'
import { avroProblems } from './avro-compatibility.ts'
import { avroFromJson, jsonOfBytes } from './avro-json.ts'
import { type AvroNode, isUnion, nameOf, namesIn, parseAvro } from './avro-schema.ts'
import { type AvroTypeOptions, applicationType, type NamedTypes, writerType } from './avro-types.ts'
import type { Codec, OwnSchema, ReadValue, ValueWriter } from '../codec.ts'
import { RegistrySerde, type RegistryOptions } from '../registry-serde.ts'

/** An Avro schema: the object, or its text as it lies in an `.avsc` file. */
export type AvroSchemaInput = string | object

/** What `avro` may be told: of subjects, of registering, and of 64 bits. */
export interface AvroOptions extends RegistryOptions, AvroTypeOptions {}

/**
 * Avro, each record with the id of the schema it was written with. What was written with another schema than the
 * application's is read by Avro's rules: defaults, aliases, promotions. Without a schema the newest one of the subject is
 * the application's, as it is at the start. With several, each record is an object with the name of its type as its one
 * member: `{ 'com.acme.Paid': { … } }`.
 *
 * `int`, `float`, `double` are numbers, `long` a number or, with `longs: 'bigint'`, a bigint; `bytes` and `fixed` are
 * `Buffer`s; a union with `null` is the value or null; `timestamp-millis` is a number of milliseconds, `date` a text
 * as `2026-01-31`, `decimal` a text as `12.50`, `duration` an object of months, days and milliseconds.
 *
 * Needs the package `avsc`.
 *
 * @example
 * topology.stream('orders', { value: avro<Order>() }).to('copies', { value: avro<Order>(orderSchema, { register: 'on-start' }) })
 * @throws EngineError `APPLICATION_INVALID` when the package is missing, `TOPOLOGY_INVALID` when a schema is none.
 */
export function avro<T>(schema?: AvroSchemaInput | readonly AvroSchemaInput[], options?: AvroOptions): Serde<T> {
  const given = schema === undefined ? [] : isSeveral(schema) ? schema : [schema]
  return new RegistrySerde<T>(new AvroCodec(given, options ?? {}), options ?? {})
}

/** A list of records is a topic of several kinds; any other list is a union, which is one schema. */
function isSeveral(schema: AvroSchemaInput | readonly AvroSchemaInput[]): schema is readonly AvroSchemaInput[] {
  return (
    Array.isArray(schema) &&
    schema.every((each) => typeof each === 'object' && (each as { type?: unknown }).type === 'record')
  )
}

/** The node of a schema, checked by the codec. */
export function avroNode(schema: AvroSchemaInput): AvroNode {
  try {
    return typeof schema === 'string' ? parseAvro(schema) : (schema as AvroNode)
  } catch (cause) {
    throw new EngineError('TOPOLOGY_INVALID', `An Avro schema is no JSON: ${(cause as Error).message}.`, { cause })
  }
}

interface OwnType extends OwnSchema {
  readonly node: AvroNode
  readonly type: Type
}

export class AvroCodec implements Codec {
  readonly type = 'AVRO'
  readonly name: string
  readonly own: readonly OwnType[]
  readonly #options: AvroTypeOptions
  /** Types made of schemas of the registry. */
  readonly #types = new Map<string, Type>()

  constructor(schemas: readonly AvroSchemaInput[], options: AvroTypeOptions) {
    this.#options = options
    const registry: NamedTypes = {}
    this.own = schemas.map((schema) => {
      const node = avroNode(schema)
      const name = nameOf(node)
      try {
        // Each of them may hold the same type, as files do that were written by a tool.
        for (const declared of namesIn(node)) delete registry[declared]
        return { name, text: JSON.stringify(node), node, type: applicationType(node, options, registry) }
      } catch (cause) {
        throw new EngineError('TOPOLOGY_INVALID', `The Avro schema ${name} is refused: ${(cause as Error).message}.`, {
          cause,
        })
      }
    })
    this.name = this.own.length === 0 ? 'avro' : `avro(${this.own.map(({ name }) => name).join(' | ')})`
  }

  reader(writer: KnownSchema, newest: KnownSchema | undefined): ReadValue {
    const node = parseAvro(writer.text)
    const known = nodesOf(writer)
    const own = this.#readerTypeOf(node, newest)
    if (isSame(own.node, node)) return wholeReader(own.type, undefined, own.tag)
    const problems = avroProblems(own.node, node, known, newest === undefined ? known : nodesOf(newest))
    if (problems.length > 0) {
      throw new SerdeError(
        `The record was written with the schema ${writer.id} (${nameOf(node)}), which ${nameOf(own.node)} cannot read: ${problems.slice(0, 3).join('; ')}.`,
      )
    }
    try {
      const written = this.#typeOf(writer, (registry) => writerType(node, registry))
      // Names only have to agree in their last part.
      const resolver = own.type.createResolver(written, { ignoreNamespaces: true } as never)
      return wholeReader(own.type, resolver, own.tag)
    } catch (cause) {
      throw new SerdeError(
        `The record was written with the schema ${writer.id}, which ${nameOf(own.node)} cannot read: ${(cause as Error).message}.`,
        { cause },
      )
    }
  }

  /** The application's type for what was written so; `tag`: the name that the value is given, where there are several. */
  #readerTypeOf(writer: AvroNode, newest: KnownSchema | undefined): { node: AvroNode; type: Type; tag?: string } {
    if (newest !== undefined) return { node: parseAvro(newest.text), type: this.#newestType(newest) }
    const [first, ...others] = this.own
    if (first !== undefined && others.length === 0) return first
    const name = nameOf(writer)
    const own = this.own.find((each) => each.name === name)
    if (own !== undefined) return { node: own.node, type: own.type, tag: name }
    throw new SerdeError(`The record is a ${name}, and the serde '${this.name}' reads no such type.`)
  }

  #newestType(newest: KnownSchema): Type {
    return this.#typeOf(newest, (registry) => applicationType(parseAvro(newest.text), this.#options, registry), 'own ')
  }

  #typeOf(schema: KnownSchema, make: (registry: NamedTypes) => Type, kind = ''): Type {
    const key = `${kind}${schema.id} ${schema.text}`
    let type = this.#types.get(key)
    if (type === undefined) {
      const registry: NamedTypes = {}
      for (const { text } of schema.references) {
        if (kind === '') writerType(parseAvro(text), registry)
        else applicationType(parseAvro(text), this.#options, registry)
      }
      type = make(registry)
      this.#types.set(key, type)
    }
    return type
  }

  writer(known: readonly KnownSchema[]): ValueWriter {
    if (this.own.length > 1) return this.#severalWriter(known)
    const [schema] = known as [KnownSchema]
    const type = this.own[0]?.type ?? this.#newestType(schema)
    return { idOf: () => schema.id, write: (value, bytes, at) => writeChecked(type, value, bytes, at) }
  }

  #severalWriter(known: readonly KnownSchema[]): ValueWriter {
    const byName = new Map(this.own.map(({ name, type }, i) => [name, { type, id: (known[i] as KnownSchema).id }]))
    const branchOf = (value: unknown): { name: string; type: Type; id: number } => {
      const [name = '', ...others] = typeof value === 'object' && value !== null ? Object.keys(value) : []
      const branch = byName.get(name)
      if (branch !== undefined && others.length === 0) return { name, ...branch }
      throw new SerdeError(
        `The serde '${this.name}' takes an object with the name of one of its types as its one member; found ${JSON.stringify(name)}.`,
      )
    }
    return {
      idOf: (value) => branchOf(value).id,
      write: (value, bytes, at) => {
        const { name, type } = branchOf(value)
        return writeChecked(type, (value as Record<string, unknown>)[name], bytes, at)
      },
    }
  }

  fromJson(value: unknown, newest: KnownSchema | undefined): unknown {
    if (newest !== undefined) return avroFromJson(this.#newestType(newest), value)
    const [first, ...others] = this.own
    if (first !== undefined && others.length === 0) return avroFromJson(first.type, value)
    const [name = ''] = Object.keys((value ?? {}) as object)
    const own = this.own.find((each) => each.name === name)
    return own === undefined ? value : { [name]: avroFromJson(own.type, (value as Record<string, unknown>)[name]) }
  }

  toJson(value: unknown): unknown {
    return jsonOfBytes(value)
  }
}

function nodesOf({ references }: KnownSchema): AvroNode[] {
  return references.map(({ text }) => parseAvro(text))
}

function isSame(a: AvroNode, b: AvroNode): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b)
}

/** Reads a value that fills its bytes. */
function wholeReader(
  type: Type,
  resolver: ReturnType<Type['createResolver']> | undefined,
  tag: string | undefined,
): ReadValue {
  const read: ReadValue = (bytes, start, end) => {
    const { value, offset } = type.decode(bytes, start, resolver as never)
    if (offset !== end) throw new SerdeError(wrongLength(start, end, offset))
    return value
  }
  return tag === undefined ? read : (bytes, start, end) => ({ [tag]: read(bytes, start, end) })
}

function wrongLength(start: number, end: number, offset: number): string {
  const needed = offset < 0 || offset > end ? 'more' : String(offset - start)
  return `The record has ${end - start} bytes of Avro, and its schema asks for ${needed}.`
}

/** What is wrong with a value is told with the place of it. */
function writeChecked(type: Type, value: unknown, bytes: Buffer, at: number): number {
  try {
    return type.encode(value, bytes, at)
  } catch (cause) {
    const faults: string[] = []
    const hook = (path: string[], _: unknown, expected: Type): void => {
      faults.push(`${path.join('.') || 'the value'} is no ${nameOfType(expected)}`)
    }
    type.isValid(value, { errorHook: hook as never })
    if (faults.length === 0 && cause instanceof SerdeError) faults.push(cause.message)
    if (faults.length === 0) throw cause
    throw new SerdeError(`The value does not fit its Avro schema: ${faults.slice(0, 3).join('; ')}.`, { cause })
  }
}

function nameOfType(type: Type): string {
  return isUnion(type.schema() as AvroNode) ? JSON.stringify(type.schema()) : (type.name ?? type.typeName)
}
