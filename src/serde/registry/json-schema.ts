/** JSON checked by a JSON Schema, over a schema registry. */
import { EngineError } from '../../base/errors.ts'
import { json } from '../json.ts'
import type { KnownSchema } from '../schemas.ts'
import { type Serde, SerdeError } from '../serde.ts'
import type { Codec, OwnSchema, ReadValue, ValueWriter } from './codec.ts'
import { optionalPackage } from './optional-package.ts'
import { RegistrySerde, type RegistryOptions } from './registry-serde.ts'

/** What `jsonSchema` may be told: of subjects, of registering, and of what is checked. */
export interface JsonSchemaOptions extends RegistryOptions {
  /** What is checked against the schema: what is read, what is written, both (default) or nothing. */
  readonly validate?: 'read' | 'write' | 'both' | 'never'
  /** Schemas that the schema refers to, by the names that its references use. */
  readonly references?: Readonly<Record<string, object>>
}

/**
 * JSON, each record with the id of its JSON Schema. What is read is checked against the application's schema; without one
 * the newest of the subject is the application's, as it is at the start. Drafts 7, 2019-09 and 2020-12, as `$schema` says.
 *
 * Needs the package `ajv`.
 *
 * @example
 * topology.stream('orders', { value: jsonSchema<Order>(orderSchema) })
 * @throws EngineError `APPLICATION_INVALID` when the package is missing, `TOPOLOGY_INVALID` when the schema is none.
 */
export function jsonSchema<T>(schema?: object, options: JsonSchemaOptions = {}): Serde<T> {
  return new RegistrySerde<T>(new JsonSchemaCodec(schema, options), options)
}

interface Validate {
  (value: unknown): boolean
  readonly $async?: boolean
  errors?: ReadonlyArray<{ readonly instancePath: string; readonly message?: string }> | null
}

interface AjvLike {
  getSchema(key: string): unknown
  validateSchema(schema: object): unknown
  readonly errors?: Validate['errors']
  addSchema(schema: object, key: string): unknown
  compile(schema: object): Validate
}

type AjvModule = { readonly default: new (options: object) => AjvLike }

const none: Validate = () => true

/** The draft that a schema names; 7, as registries take it, where it names none. */
function ajvFor(schema: object): AjvLike {
  const draft = String((schema as { $schema?: unknown }).$schema ?? '')
  const module = draft.includes('2020-12') ? 'ajv/dist/2020.js' : draft.includes('2019-09') ? 'ajv/dist/2019.js' : 'ajv'
  const { default: Ajv } = optionalPackage<AjvModule>(module, 'The JSON Schema format')
  // Formats are notes here, as in the registry: a library for them is another package. NaN is no number of JSON.
  return new Ajv({ allErrors: false, strict: false, strictNumbers: true, validateFormats: false })
}

/** What its draft says against it; undefined: nothing, or the draft is not known here. What it refers to is not looked up. */
export function jsonSchemaFault(schema: object): string | undefined {
  const { $schema } = schema as { readonly $schema?: unknown }
  const ajv = ajvFor(schema)
  if (typeof $schema === 'string' && ajv.getSchema($schema) === undefined) return undefined
  if (ajv.validateSchema(schema) === true) return undefined
  const first = ajv.errors?.[0]
  const place = first?.instancePath ? first.instancePath.slice(1).replaceAll('/', '.') : 'the schema'
  return `${place} ${first?.message ?? 'is refused'}`
}

/** The names under which a schema finds those that it refers to: a relative one is relative to the schema's own. */
function keysOf(name: string, { $id }: { readonly $id?: unknown }): string[] {
  return typeof $id === 'string' && URL.canParse(name, $id) ? [name, new URL(name, $id).href] : [name]
}

class JsonSchemaCodec implements Codec {
  readonly type = 'JSON'
  readonly name: string
  readonly own: readonly OwnSchema[]
  readonly readsAnything: boolean
  readonly #options: JsonSchemaOptions
  readonly #ownCheck: Validate | undefined
  readonly #checks = new Map<number, Validate>()
  readonly #json = json<unknown>()

  constructor(schema: object | undefined, options: JsonSchemaOptions) {
    this.#options = options
    this.readsAnything = options.validate === 'write' || options.validate === 'never'
    const title = (schema as { title?: unknown } | undefined)?.title
    const name = typeof title === 'string' ? title : 'json'
    this.name = schema === undefined ? 'jsonSchema' : `jsonSchema(${name})`
    const imports = Object.entries(options.references ?? {}).map(([id, each]) => ({
      name: id,
      text: JSON.stringify(each),
    }))
    this.own =
      schema === undefined ? [] : [{ name, text: JSON.stringify(schema), ...(imports.length > 0 && { imports }) }]
    this.#ownCheck = schema && this.#compile(schema, imports, 'TOPOLOGY_INVALID')
  }

  #compile(
    schema: object,
    references: ReadonlyArray<{ name: string; text: string }>,
    code?: 'TOPOLOGY_INVALID',
  ): Validate {
    const ajv = ajvFor(schema)
    try {
      for (const { name, text } of references) {
        const referred = JSON.parse(text) as { readonly $id?: unknown }
        for (const key of new Set(keysOf(name, schema))) if (key !== referred.$id) ajv.addSchema(referred, key)
      }
      const check = ajv.compile(schema)
      // Its answer would be a promise, which counts as yes.
      if (check.$async) throw new SerdeError('it says $async, and a serde cannot wait')
      return check
    } catch (cause) {
      const message = `The JSON Schema of the serde '${this.name}' is refused: ${(cause as Error).message}.`
      throw code === undefined ? new SerdeError(message, { cause }) : new EngineError(code, message, { cause })
    }
  }

  #checkOf(newest: KnownSchema | undefined): Validate {
    if (this.#ownCheck !== undefined) return this.#ownCheck
    if (newest === undefined) return none
    let check = this.#checks.get(newest.id)
    if (check === undefined) {
      check = this.#compile(JSON.parse(newest.text) as object, newest.references)
      this.#checks.set(newest.id, check)
    }
    return check
  }

  reader(_writer: KnownSchema, newest: KnownSchema | undefined): ReadValue {
    const { validate = 'both' } = this.#options
    const check = validate === 'read' || validate === 'both' ? this.#checkOf(newest) : none
    const read = this.#json.deserializeFrom as (bytes: Uint8Array, start: number, end: number) => unknown
    return (bytes, start, end) => {
      const value = read(bytes, start, end)
      if (!check(value)) throw refusal(check, 'read')
      return value
    }
  }

  writer(known: readonly KnownSchema[]): ValueWriter {
    const [schema] = known as [KnownSchema]
    const { validate = 'both' } = this.#options
    const check = validate === 'write' || validate === 'both' ? this.#checkOf(schema) : none
    const write = this.#json.serializeTransient as (value: unknown) => Uint8Array
    return {
      idOf: () => schema.id,
      write: (value, bytes, at) => {
        if (!check(value)) throw refusal(check, 'written')
        const text = write(value)
        if (bytes.length - at < text.length) return bytes.length - at - text.length
        bytes.set(text, at)
        return at + text.length
      },
    }
  }

  fromJson(value: unknown): unknown {
    return value
  }

  toJson(value: unknown): unknown {
    return value
  }
}

function refusal({ errors }: Validate, done: string): SerdeError {
  const first = errors?.[0]
  const place = first?.instancePath ? first.instancePath.slice(1).replaceAll('/', '.') : 'it'
  return new SerdeError(
    `The value that is ${done} does not satisfy its JSON Schema: ${place} ${first?.message ?? 'is refused'}.`,
  )
}
