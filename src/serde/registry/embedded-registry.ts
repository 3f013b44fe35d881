/** A registry in this process, for development and tests: it answers the same requests as one over the network. */
import { EngineError } from '../../base/errors.ts'
import type { KnownSchema, SchemaNeed, SchemaType } from '../schemas.ts'
import { parseAvro } from './avro/avro-schema.ts'
import type { SchemaReference } from './client.ts'
import { type ComparedSchema, schemaProblems } from './compatibility.ts'
import { schemaFault } from './schema-fault.ts'
import type { RegistryCall, RegistryRequest, RegistryResponse } from './transport.ts'

interface StoredSchema {
  readonly id: number
  readonly type: SchemaType
  readonly text: string
  readonly references: readonly SchemaReference[]
}

interface Version {
  readonly version: number
  readonly id: number
}

/** All that an embedded registry holds, as plain data. */
export interface RegistryContents {
  /** Each schema with its id. */
  readonly schemas: readonly StoredSchema[]
  /** The versions of each subject, oldest first. */
  readonly subjects: ReadonlyArray<readonly [subject: string, versions: readonly Version[]]>
  /** The level of compatibility of each subject that has one of its own. */
  readonly levels: ReadonlyArray<readonly [subject: string, level: string]>
}

const levels = ['NONE', 'BACKWARD', 'BACKWARD_TRANSITIVE', 'FORWARD', 'FORWARD_TRANSITIVE', 'FULL', 'FULL_TRANSITIVE']
/** The level of all subjects that have none of their own stands under this name. */
const allSubjects = ''

type Body = Readonly<Record<string, unknown>>

class Refusal extends Error {
  readonly status: number
  readonly code: number

  constructor(status: number, code: number, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

/**
 * A schema registry in this process, for development and tests.
 *
 * @example
 * const registry = new EmbeddedRegistry()
 * registry.register('orders-value', { type: 'record', name: 'Order', fields: [] })
 */
export class EmbeddedRegistry {
  readonly #schemas = new Map<number, StoredSchema>()
  readonly #ids = new Map<string, number>()
  readonly #subjects = new Map<string, Version[]>()
  readonly #levels = new Map<string, string>()
  readonly #changed: (contents: RegistryContents) => void

  /** `changed` hears of all contents after each change: for those who keep them. */
  constructor(contents?: RegistryContents, changed: (contents: RegistryContents) => void = () => undefined) {
    this.#changed = changed
    for (const schema of contents?.schemas ?? []) {
      this.#schemas.set(schema.id, schema)
      this.#ids.set(identityOf(schema), schema.id)
    }
    for (const [subject, versions] of contents?.subjects ?? []) this.#subjects.set(subject, [...versions])
    for (const [subject, level] of contents?.levels ?? []) this.#levels.set(subject, level)
  }

  /** All that it holds, to be kept and given to another one. */
  contents(): RegistryContents {
    return { schemas: [...this.#schemas.values()], subjects: [...this.#subjects], levels: [...this.#levels] }
  }

  /** As a registry over the network is called. */
  readonly call: RegistryCall = async (request) => this.handle(request)

  /** Answers a request: the same paths, statuses and error codes as Confluent's registry. */
  handle(request: RegistryRequest): RegistryResponse {
    try {
      return { status: 200, body: this.#route(request) }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return { status: error.status, body: { error_code: error.code, message: error.message } }
    }
  }

  /**
   * Puts a schema under a subject, as the registry's clients do; gives its id.
   *
   * @throws EngineError `SCHEMA_REFUSED` where the subject's compatibility forbids it, or it is no schema.
   */
  register(subject: string, schema: string | object, type: SchemaType = 'AVRO'): number {
    const text = typeof schema === 'string' ? schema : JSON.stringify(schema)
    const answer = this.handle({
      method: 'POST',
      path: `/subjects/${encodeURIComponent(subject)}/versions`,
      body: { schema: text, schemaType: type },
    })
    const { id, message } = answer.body as { id?: number; message?: string }
    if (id !== undefined) return id
    throw new EngineError('SCHEMA_REFUSED', `the schema for ${subject} is refused: ${message}`)
  }

  /** What a thread has to know before its serdes work; the application's schemas are registered. */
  prepare(
    needs: readonly SchemaNeed[],
    keyOf: (need: SchemaNeed) => string,
  ): { schemas: KnownSchema[]; own: Array<[string, number]> } {
    const own: Array<[string, number]> = []
    for (const need of needs) {
      const id = need.text === null ? this.#newestOf(need) : this.#registerNeed(need)
      own.push([keyOf(need), id])
    }
    return { schemas: [...this.#schemas.keys()].map((id) => this.known(id) as KnownSchema), own }
  }

  #newestOf({ subject, where }: SchemaNeed): number {
    const newest = this.#subjects.get(subject)?.at(-1)
    if (newest !== undefined) return newest.id
    throw new EngineError(
      'SCHEMA_REFUSED',
      `the subject ${subject}, whose newest schema ${where} takes, does not exist; register a schema under it, or give the serde one`,
    )
  }

  #registerNeed(need: SchemaNeed): number {
    const references: SchemaReference[] = []
    const post = (subject: string, text: string | null, names: readonly string[]): RegistryResponse => {
      const body = {
        schema: text,
        schemaType: need.type,
        references: references.filter(({ name }) => names.includes(name)),
      }
      return this.handle({ method: 'POST', path: `/subjects/${encodeURIComponent(subject)}/versions`, body })
    }
    for (const { name, text, uses = [] } of need.imports ?? []) {
      post(name, text, uses)
      references.push({ name, subject: name, version: this.#subjects.get(name)?.at(-1)?.version ?? 1 })
    }
    const answer = post(
      need.subject,
      need.text,
      references.map(({ name }) => name),
    )
    const { id, message } = answer.body as { id?: number; message?: string }
    if (id !== undefined) return id
    throw new EngineError(
      'SCHEMA_REFUSED',
      `the schema of ${need.where} cannot stand under ${need.subject}: ${message}`,
    )
  }

  /** The schema of an id, with those that it refers to. */
  known(id: number): KnownSchema | undefined {
    const schema = this.#schemas.get(id)
    if (schema === undefined) return undefined
    const references: Array<{ name: string; text: string }> = []
    this.#resolve(schema.references, references, new Set())
    return { id, type: schema.type, text: schema.text, references }
  }

  #resolve(list: readonly SchemaReference[], into: Array<{ name: string; text: string }>, seen: Set<string>): void {
    for (const { name, subject, version } of list) {
      if (seen.has(name)) continue
      seen.add(name)
      const schema = this.#schemas.get(this.#version(subject, String(version)).id) as StoredSchema
      this.#resolve(schema.references, into, seen)
      into.push({ name, text: schema.text })
    }
  }

  #route({ method, path, body }: RegistryRequest): unknown {
    const [route = ''] = path.split('?', 1)
    const parts = route.split('/').slice(1).map(decodeURIComponent)
    switch (`${method} ${parts[0]}`) {
      case 'GET schemas':
        return this.#getSchemas(parts)
      case 'GET subjects':
        return this.#getSubjects(parts)
      case 'POST subjects':
        return this.#postSubject(parts, (body ?? {}) as Body)
      case 'DELETE subjects':
        return this.#delete(parts)
      case 'POST compatibility':
        return this.#compatibility(parts, (body ?? {}) as Body)
      case 'GET config':
        return { compatibilityLevel: this.#level(parts[1] ?? allSubjects) }
      case 'PUT config':
        return this.#setLevel(parts[1] ?? allSubjects, (body ?? {}) as Body)
      case 'GET mode':
        return { mode: 'READWRITE' }
      default:
        throw new Refusal(404, 404, `there is no ${method} ${route}`)
    }
  }

  #getSchemas(parts: readonly string[]): unknown {
    if (parts[1] === 'types') return ['JSON', 'PROTOBUF', 'AVRO']
    const id = Number(parts[2])
    const schema = this.#schemas.get(id)
    if (parts[1] !== 'ids' || schema === undefined) throw new Refusal(404, 40403, `Schema ${parts[2]} not found.`)
    if (parts[3] === 'versions') {
      return [...this.#subjects].flatMap(([subject, versions]) =>
        versions.filter((version) => version.id === id).map(({ version }) => ({ subject, version })),
      )
    }
    return shown(schema)
  }

  #getSubjects(parts: readonly string[]): unknown {
    const [, subject, , version] = parts
    if (subject === undefined || subject === '') return [...this.#subjects.keys()]
    const versions = this.#versions(subject)
    if (version === undefined) return versions.map((each) => each.version)
    const found = this.#version(subject, version)
    const schema = this.#schemas.get(found.id) as StoredSchema
    return parts[4] === 'schema'
      ? JSON.parse(schema.text)
      : { subject, version: found.version, id: found.id, ...shown(schema) }
  }

  #versions(subject: string): Version[] {
    const versions = this.#subjects.get(subject)
    if (versions === undefined) throw new Refusal(404, 40401, `Subject '${subject}' not found.`)
    return versions
  }

  #version(subject: string, version: string): Version {
    const versions = this.#versions(subject)
    const found =
      version === 'latest' || version === '-1'
        ? versions.at(-1)
        : versions.find((each) => each.version === Number(version))
    if (found === undefined) throw new Refusal(404, 40402, `Version ${version} not found.`)
    return found
  }

  #postSubject(parts: readonly string[], body: Body): unknown {
    const subject = parts[1] ?? ''
    const schema = this.#newSchema(body)
    const known = this.#ids.get(identityOf(schema))
    const standing = known === undefined ? undefined : this.#subjects.get(subject)?.find(({ id }) => id === known)
    if (parts[2] === undefined) {
      this.#versions(subject)
      if (standing === undefined) throw new Refusal(404, 40403, 'Schema not found')
      return { subject, version: standing.version, id: standing.id, ...shown(schema) }
    }
    if (standing !== undefined) return { id: standing.id }
    const problems = this.#problems(subject, schema, this.#against(subject, 'latest', true))
    if (problems.length > 0)
      throw new Refusal(
        409,
        409,
        `Schema being registered is incompatible with an earlier schema: ${problems.join('; ')}`,
      )
    return { id: this.#add(subject, schema, known) }
  }

  #newSchema({ schema, schemaType = 'AVRO', references = [] }: Body): Omit<StoredSchema, 'id'> {
    if (typeof schema !== 'string') throw new Refusal(422, 42201, 'Invalid schema: none was given.')
    if (schemaType !== 'AVRO' && schemaType !== 'JSON' && schemaType !== 'PROTOBUF')
      throw new Refusal(422, 42201, `Invalid schema type ${String(schemaType)}.`)
    if (!isReferences(references))
      throw new Refusal(422, 42201, 'Invalid schema: its references are no list of names with subject and version.')
    const made: Omit<StoredSchema, 'id'> = { type: schemaType, text: schema, references }
    const fault = schemaFault(schemaType, this.#referring(made))
    if (fault !== undefined) throw new Refusal(422, 42201, `Invalid schema: ${fault}.`)
    return made
  }

  /** As `#compared`, of one that is not known yet: that a reference leads nowhere is a fault of its own. */
  #referring(schema: Omit<StoredSchema, 'id'>): ComparedSchema {
    try {
      return this.#compared(schema)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      throw new Refusal(422, 42201, `Invalid schema: one that it refers to is missing. ${error.message}`)
    }
  }

  #add(subject: string, schema: Omit<StoredSchema, 'id'>, known: number | undefined): number {
    const id = known ?? this.#schemas.size + 1
    this.#schemas.set(id, { id, ...schema })
    this.#ids.set(identityOf(schema), id)
    const versions = this.#subjects.get(subject) ?? []
    versions.push({ version: (versions.at(-1)?.version ?? 0) + 1, id })
    this.#subjects.set(subject, versions)
    this.#changed(this.contents())
    return id
  }

  #delete(parts: readonly string[]): unknown {
    const subject = parts[1] ?? ''
    const versions = this.#versions(subject).map(({ version }) => version)
    this.#subjects.delete(subject)
    this.#changed(this.contents())
    return versions
  }

  #compatibility(parts: readonly string[], body: Body): unknown {
    const subject = parts[2] ?? ''
    const schema = this.#newSchema(body)
    this.#versions(subject)
    const problems = this.#problems(subject, schema, this.#against(subject, parts[4] ?? 'latest', false))
    return { is_compatible: problems.length === 0, messages: problems }
  }

  /** The versions that a new one is held against. */
  #against(subject: string, version: string, registering: boolean): StoredSchema[] {
    const versions = this.#subjects.get(subject)
    if (versions === undefined) return []
    const all = registering && this.#level(subject).endsWith('_TRANSITIVE')
    const chosen = all ? versions : [this.#version(subject, version)]
    return chosen.map(({ id }) => this.#schemas.get(id) as StoredSchema)
  }

  #problems(subject: string, schema: Omit<StoredSchema, 'id'>, against: readonly StoredSchema[]): string[] {
    const level = this.#level(subject)
    if (level === 'NONE') return []
    return against.flatMap((older) => {
      if (older.type !== schema.type)
        return [`the subject holds schemas of the format ${older.type}, not ${schema.type}`]
      const [ours, theirs] = [this.#compared(schema), this.#compared(older)]
      const backward = level.startsWith('FORWARD') ? [] : schemaProblems(schema.type, ours, theirs)
      const forward = level.startsWith('BACKWARD')
        ? []
        : schemaProblems(schema.type, theirs, ours).map((each) => `for older readers ${each}`)
      return [...backward, ...forward]
    })
  }

  #compared({ text, references }: Omit<StoredSchema, 'id'>): ComparedSchema {
    const resolved: Array<{ name: string; text: string }> = []
    this.#resolve(references, resolved, new Set())
    return { text, references: resolved }
  }

  #level(subject: string): string {
    return this.#levels.get(subject) ?? this.#levels.get(allSubjects) ?? 'BACKWARD'
  }

  #setLevel(subject: string, { compatibility }: Body): unknown {
    if (typeof compatibility !== 'string' || !levels.includes(compatibility))
      throw new Refusal(422, 42203, `Invalid compatibility level; one of ${levels.join(', ')}.`)
    this.#levels.set(subject, compatibility)
    this.#changed(this.contents())
    return { compatibility }
  }
}

function isReferences(references: unknown): references is readonly SchemaReference[] {
  return (
    Array.isArray(references) &&
    references.every((each: Partial<SchemaReference> | null) => {
      return typeof each?.name === 'string' && typeof each.subject === 'string'
    })
  )
}

/** Texts that differ in white space alone are one schema. */
function identityOf({ type, text, references }: Omit<StoredSchema, 'id'>): string {
  const plain = type === 'PROTOBUF' ? text.trim() : JSON.stringify(parseAvro(text))
  return JSON.stringify([type, plain, references])
}

function shown({ type, text, references }: Omit<StoredSchema, 'id'>): Body {
  return {
    schema: text,
    ...(type !== 'AVRO' && { schemaType: type }),
    ...(references.length > 0 && { references }),
  }
}
