/** What the engine asks a registry, in the terms of its REST interface. */
import type { KnownSchema, SchemaType } from '../schemas.ts'
import { LateAnswer, type RegistryCall, type RegistryRequest } from './transport.ts'

export interface SchemaReference {
  readonly name: string
  readonly subject: string
  readonly version: number
}

/** The registry has not done what was asked. `status` 0: it did not answer, or not as a registry does. */
export class RegistryFailure extends Error {
  override readonly name = 'RegistryFailure'
  readonly status: number
  /** The registry's own code, such as 40401. */
  readonly code: number

  constructor(message: string, status: number, code: number, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.status = status
    this.code = code
  }

  /** The registry itself says that there is no such thing; a proxy in front of it says 404 in other words. */
  get isAbsence(): boolean {
    return this.status === 404 && this.code !== 0
  }
}

type Fields = Readonly<Record<string, unknown>>

export interface NewSchema {
  readonly type: SchemaType
  readonly text: string
  readonly references?: readonly SchemaReference[]
}

export class RegistryClient {
  readonly #call: RegistryCall

  constructor(call: RegistryCall) {
    this.#call = call
  }

  /** Answers at all, whatever it says. */
  async ping(): Promise<number> {
    return (await this.#call({ method: 'GET', path: '/subjects' })).status
  }

  async byId(id: number): Promise<KnownSchema> {
    return this.#known(id, await this.#ask('GET', `/schemas/ids/${id}`))
  }

  async newest(subject: string): Promise<KnownSchema> {
    return this.version(subject, 'latest')
  }

  async version(subject: string, version: number | 'latest'): Promise<KnownSchema> {
    const found = await this.#ask('GET', `/subjects/${encodeURIComponent(subject)}/versions/${version}`)
    return this.#known(integer(found, 'id'), found)
  }

  /** None where the subject does not exist. */
  async versions(subject: string): Promise<number[]> {
    try {
      const list = await this.#call({ method: 'GET', path: `/subjects/${encodeURIComponent(subject)}/versions` })
      if (list.status === 200 && Array.isArray(list.body)) return list.body as number[]
      throw failureOf(list.status, list.body, `/subjects/${subject}/versions`)
    } catch (error) {
      const failure = wrapped(error)
      if (failure.isAbsence) return []
      throw failure
    }
  }

  async subjects(): Promise<string[]> {
    const { status, body } = await this.#call({ method: 'GET', path: '/subjects' })
    if (status === 200 && Array.isArray(body)) return body as string[]
    throw failureOf(status, body, '/subjects')
  }

  /** Its id under the subject; undefined where it does not stand there. */
  async lookUp(subject: string, schema: NewSchema): Promise<number | undefined> {
    try {
      return integer(await this.#ask('POST', `/subjects/${encodeURIComponent(subject)}`, bodyOf(schema)), 'id')
    } catch (error) {
      if (error instanceof RegistryFailure && error.isAbsence) return undefined
      throw error
    }
  }

  async register(subject: string, schema: NewSchema): Promise<number> {
    const path = `/subjects/${encodeURIComponent(subject)}/versions`
    return integer(await this.#ask('POST', path, bodyOf(schema)), 'id')
  }

  /** What the registry says against a schema under its own rules; empty: it takes it. */
  async problems(subject: string, schema: NewSchema): Promise<string[]> {
    const path = `/compatibility/subjects/${encodeURIComponent(subject)}/versions/latest?verbose=true`
    try {
      const answer = await this.#ask('POST', path, bodyOf(schema))
      if (answer.is_compatible !== false) return []
      const messages = Array.isArray(answer.messages) ? answer.messages.map(String) : []
      return messages.length > 0 ? messages : ['the registry gives no reason']
    } catch (error) {
      // Nothing stands under the subject yet.
      if (error instanceof RegistryFailure && error.isAbsence) return []
      throw error
    }
  }

  async #known(id: number, found: Fields): Promise<KnownSchema> {
    const type = (found.schemaType ?? 'AVRO') as SchemaType
    const references: Array<{ name: string; text: string }> = []
    await this.#resolve(referencesOf(found), references, new Set())
    return { id, type, text: text(found, 'schema'), references }
  }

  /** Depth first: what a schema refers to stands in front of it. */
  async #resolve(
    list: readonly SchemaReference[],
    into: Array<{ name: string; text: string }>,
    seen: Set<string>,
  ): Promise<void> {
    for (const { name, subject, version } of list) {
      if (seen.has(name)) continue
      seen.add(name)
      const found = await this.#ask('GET', `/subjects/${encodeURIComponent(subject)}/versions/${version}`)
      await this.#resolve(referencesOf(found), into, seen)
      into.push({ name, text: text(found, 'schema') })
    }
  }

  async #ask(method: RegistryRequest['method'], path: string, body?: unknown): Promise<Fields> {
    try {
      const { status, body: answer } = await this.#call({ method, path, ...(body !== undefined && { body }) })
      if (status >= 200 && status < 300 && typeof answer === 'object' && answer !== null) return answer as Fields
      throw failureOf(status, answer, path)
    } catch (error) {
      throw wrapped(error)
    }
  }
}

function wrapped(error: unknown): RegistryFailure {
  if (error instanceof RegistryFailure) return error
  if (error instanceof LateAnswer) return new RegistryFailure(`it gives ${error.message}`, 0, 0, error)
  const { message, code } = error as { message?: string; code?: string }
  return new RegistryFailure(`it cannot be reached: ${message || code || String(error)}`, 0, 0, error)
}

function failureOf(status: number, answer: unknown, path: string): RegistryFailure {
  const { message, error_code: code } = (typeof answer === 'object' && answer !== null ? answer : {}) as Fields
  if (status === 401 || status === 403) {
    return new RegistryFailure(
      `it refuses the credentials (${status}); see schema-registry.username and schema-registry.token`,
      status,
      0,
    )
  }
  if (status >= 200 && status < 300)
    return new RegistryFailure(`it answers ${path} with what is no JSON of a registry`, 0, 0)
  if (status === 404 && typeof code !== 'number')
    return new RegistryFailure(
      `it answers ${path} with 404 as no registry does; see the path in schema-registry.url`,
      404,
      0,
    )
  const said = typeof message === 'string' ? `: ${message}` : ''
  return new RegistryFailure(`it answers ${path} with ${status}${said}`, status, typeof code === 'number' ? code : 0)
}

function bodyOf({ type, text: schema, references }: NewSchema): Fields {
  return {
    schema,
    ...(type !== 'AVRO' && { schemaType: type }),
    ...(references !== undefined && references.length > 0 && { references }),
  }
}

function referencesOf(found: Fields): SchemaReference[] {
  return Array.isArray(found.references) ? (found.references as SchemaReference[]) : []
}

function text(found: Fields, name: string): string {
  const value = found[name]
  if (typeof value === 'string') return value
  throw new RegistryFailure(`its answer has no ${name}`, 0, 0)
}

function integer(found: Fields, name: string): number {
  const value = found[name]
  if (Number.isSafeInteger(value)) return value as number
  throw new RegistryFailure(`its answer has no ${name}`, 0, 0)
}
