/**
 * The one place of a process that talks to the registry: finds out what the application's serdes need before the start,
 * and fetches what comes up later, once for all threads. What it has learnt is kept, so that a restart needs no registry.
 */
import type { Timers } from '../../base/timers.ts'
import type { Clock } from '../../base/clock.ts'
import { EngineError, messageOf } from '../../base/errors.ts'
import { type KnownSchema, needKey, type SchemaNeed } from '../schemas.ts'
import { isReadAlike, schemaProblems } from './compatibility.ts'
import { type RegistryClient, RegistryFailure, type SchemaReference } from './client.ts'
import type { SchemaAnswer } from './schema-store.ts'

/** What is kept of a registry between two runs. */
export interface SchemaMemory {
  readonly schemas: readonly KnownSchema[]
  readonly own: ReadonlyArray<readonly [key: string, id: number]>
}

export interface HubOptions {
  readonly client: RegistryClient
  /** How the registry is named in sentences: without credentials. */
  readonly shownUrl: string
  /** The registry is the embedded one: whatever the application needs goes into it. */
  readonly registersAll: boolean
  readonly memory: SchemaMemory | undefined
  readonly remember: (memory: SchemaMemory) => void
  /** How long an unknown id is tried for, and the time until it is tried again after that. */
  readonly giveUpAfterMs: number
  readonly againAfterMs: number
  readonly clock: Clock
  readonly timers: Timers
  readonly log: (level: 'warn' | 'info', message: string) => void
}

const firstPauseMs = 100
const longestPauseMs = 5000

export class SchemaHub {
  readonly #o: HubOptions
  readonly #known = new Map<number, KnownSchema>()
  readonly #own = new Map<string, number>()
  readonly #fetching = new Map<number, Promise<SchemaAnswer>>()
  /** What is known of an earlier run alone: ids of schemas, and keys of own ones. */
  readonly #keptIds = new Set<number>()
  readonly #keptKeys = new Set<string>()
  /** The registry has given a schema for a kept id that is not the kept one. */
  #isAnother = false
  /** Why the registry did not do what was asked last; undefined: it did. */
  #trouble: string | undefined
  #preparing = false
  #closed = false

  constructor(options: HubOptions) {
    this.#o = options
    for (const schema of options.memory?.schemas ?? []) {
      this.#known.set(schema.id, schema)
      this.#keptIds.add(schema.id)
    }
    for (const [key, id] of options.memory?.own ?? []) {
      if (!this.#known.has(id)) continue
      this.#own.set(key, id)
      this.#keptKeys.add(key)
    }
  }

  get trouble(): string | undefined {
    return this.#trouble
  }

  /** Ids that are being fetched: records wait for them. */
  get fetching(): number[] {
    return [...this.#fetching.keys()]
  }

  /** Something is asked until it is answered, so that `trouble` is of this moment. */
  get isAsking(): boolean {
    return this.#preparing || this.#fetching.size > 0
  }

  /** Somebody else has asked the registry for something, and it did that. */
  answered(): void {
    if (!this.isAsking) this.#recovered()
  }

  close(): void {
    this.#closed = true
  }

  /**
   * Resolves once all that the serdes need is known, however long the registry is away.
   *
   * @throws EngineError `SCHEMA_REFUSED` where it is there and a schema is missing or does not fit.
   */
  async prepare(needs: readonly SchemaNeed[]): Promise<Extract<SchemaAnswer, { type: 'prepared' }>> {
    this.#preparing = true
    try {
      await this.#prepare(merged(needs))
    } finally {
      this.#preparing = false
    }
    return { type: 'prepared', schemas: [...this.#known.values()], own: [...this.#own] }
  }

  async #prepare(unique: readonly SchemaNeed[]): Promise<void> {
    await this.#learnOwn(unique)
    await this.#learnVersions(unique)
    if (this.#isAnother) {
      this.#forgetKept()
      await this.#learnOwn(unique)
      await this.#learnVersions(unique)
    }
    // Own ones that were kept, and do not stand under their subject any more.
    await this.#learnOwn(unique.filter((need) => !this.#own.has(needKey(need))))
    this.#remember()
  }

  async #learnOwn(needs: readonly SchemaNeed[]): Promise<void> {
    for (const need of needs) {
      if (!need.writes && need.text !== null && !this.#o.registersAll) continue
      const id = await this.#untilDone(() => this.#ownId(need), this.#own.get(needKey(need)))
      this.#own.set(needKey(need), id)
    }
  }

  async #learnVersions(needs: readonly SchemaNeed[]): Promise<void> {
    for (const subject of new Set(needs.map((need) => need.subject))) {
      const own = needs.filter((need) => need.subject === subject)
      const fetched = this.#versions(subject, own)
      // Rows of stores may have been written with any version: they must be readable at once.
      if (own.some((need) => need.writes)) await this.#untilDone(() => fetched.then(() => 0), 0)
      else await fetched.catch((error: unknown) => this.#withoutVersions(error))
    }
  }

  /** The ids of a registry that was set up anew mean something else. */
  #forgetKept(): void {
    this.#isAnother = false
    for (const id of this.#keptIds) this.#known.delete(id)
    for (const key of this.#keptKeys) this.#own.delete(key)
    this.#keptIds.clear()
    this.#keptKeys.clear()
    this.#o.log(
      'warn',
      `the schema registry ${this.#o.shownUrl} has other schemas under the ids that were kept of it, as one that was set up anew; they are forgotten. What was written with earlier ids cannot be read with it`,
    )
  }

  #learn(schema: KnownSchema): void {
    const kept = this.#keptIds.delete(schema.id) ? this.#known.get(schema.id) : undefined
    if (kept !== undefined && (kept.type !== schema.type || !isReadAlike(kept.type, kept.text, schema.text)))
      this.#isAnother = true
    this.#known.set(schema.id, schema)
  }

  /** What is only read can be fetched when a record names it. */
  #withoutVersions(error: unknown): void {
    if (!(error instanceof RegistryFailure)) throw error
    this.#failed(error, 'records whose schema is not known yet will wait')
  }

  /** Tries again while the registry cannot be had; `known` is what will do instead. */
  async #untilDone(act: () => Promise<number>, known: number | undefined): Promise<number> {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        const result = await act()
        this.#recovered()
        return result
      } catch (error) {
        if (!(error instanceof RegistryFailure)) throw error
        this.#failed(error)
        if (known !== undefined) return known
        if (this.#closed) throw error
        await this.#pause(pauseMs)
      }
    }
  }

  async #ownId(need: SchemaNeed): Promise<number> {
    if (need.text === null) return this.#newest(need)
    const known = this.#own.get(needKey(need))
    if (known !== undefined && need.register !== 'always') return known
    try {
      const id = await this.#standing(need, need.text)
      this.#learn({ id, type: need.type, text: need.text, references: need.imports ?? [] })
      this.#keptKeys.delete(needKey(need))
      return id
    } catch (error) {
      // It has understood what is asked, and will never do it.
      if (error instanceof RegistryFailure && (error.status === 409 || error.status === 422))
        throw refused(need, [error.message])
      throw error
    }
  }

  async #standing(need: SchemaNeed, text: string): Promise<number> {
    const { client, registersAll } = this.#o
    const schema = { type: need.type, text, references: await this.#imports(need) }
    const registers = registersAll || need.register !== 'never'
    const standing = need.register === 'always' ? undefined : await client.lookUp(need.subject, schema)
    if (standing === undefined && !registers) throw missing(need, this.#o.shownUrl)
    return standing ?? (await this.#register(need, schema))
  }

  /** What the schema imports goes in before it. */
  async #imports(need: SchemaNeed): Promise<SchemaReference[]> {
    const references: SchemaReference[] = []
    const referencesTo = (names: readonly string[] = []): SchemaReference[] =>
      references.filter(({ name }) => names.includes(name))
    for (const { name, text, uses } of need.imports ?? []) {
      if (this.#o.registersAll || need.register !== 'never')
        await this.#o.client.register(name, { type: need.type, text, references: referencesTo(uses) })
      const versions = await this.#o.client.versions(name)
      const version = versions.at(-1)
      if (version === undefined) throw missing({ ...need, subject: name }, this.#o.shownUrl)
      references.push({ name, subject: name, version })
    }
    return directly(need, references)
  }

  async #newest(need: SchemaNeed): Promise<number> {
    try {
      const schema = await this.#o.client.newest(need.subject)
      this.#learn(schema)
      return schema.id
    } catch (error) {
      if (error instanceof RegistryFailure && error.isAbsence) throw missing(need, this.#o.shownUrl)
      throw error
    }
  }

  async #register(need: SchemaNeed, schema: Parameters<RegistryClient['register']>[1]): Promise<number> {
    const { client } = this.#o
    const problems = await client.problems(need.subject, schema)
    if (problems.length > 0) throw refused(need, problems)
    return await client.register(need.subject, schema)
  }

  /** All that was ever written under a subject, so that nothing of it has to be waited for; and whether it can be read. */
  async #versions(subject: string, needs: readonly SchemaNeed[]): Promise<void> {
    const { client } = this.#o
    const found: KnownSchema[] = []
    for (const version of await client.versions(subject)) {
      const schema = await client.version(subject, version)
      this.#learn(schema)
      found.push(schema)
    }
    for (const need of needs) {
      const key = needKey(need)
      const standing = found.find(({ id }) => id === this.#own.get(key))
      const stands = standing !== undefined && isReadAlike(need.type, standing.text, need.text ?? standing.text)
      if (this.#keptKeys.delete(key) && !stands) this.#own.delete(key)
    }
    // A schema that only reads has an id all the same where somebody registered it: records can be fed with it.
    for (const need of needs) {
      const standing = need.text === null ? undefined : found.find(({ text }) => isSameText(text, need.text as string))
      if (standing !== undefined && !this.#own.has(needKey(need))) this.#own.set(needKey(need), standing.id)
    }
    const newest = found.at(-1)
    if (newest !== undefined) for (const need of needs) this.#checkReader(need, newest)
  }

  /** A schema of the application that cannot read what is written today is refused before anything is processed. */
  #checkReader(need: SchemaNeed, newest: KnownSchema): void {
    if (need.text === null || need.readsAnything || need.type !== newest.type) return
    const problems = problemsBetween({ text: need.text, references: need.imports ?? [] }, newest)
    if (problems.length === 0) return
    throw new EngineError(
      'SCHEMA_REFUSED',
      `the schema of ${need.where} cannot read what is written under ${need.subject}, whose newest schema is ${newest.id}: ${problems.join('; ')}`,
    )
  }

  /** The schema of an id that a record carries: one request for all who ask, tried until it is given up. */
  schema(id: number): Promise<SchemaAnswer> {
    const known = this.#known.get(id)
    if (known !== undefined) return Promise.resolve({ type: 'schema', schema: known })
    let fetching = this.#fetching.get(id)
    if (fetching === undefined) {
      fetching = this.#fetch(id).finally(() => this.#fetching.delete(id))
      this.#fetching.set(id, fetching)
    }
    return fetching
  }

  async #fetch(id: number): Promise<SchemaAnswer> {
    const { client, clock, giveUpAfterMs, againAfterMs, shownUrl } = this.#o
    const until = clock.monotonic() + giveUpAfterMs
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        const schema = await client.byId(id)
        this.#known.set(id, schema)
        this.#recovered()
        this.#remember()
        return { type: 'schema', schema }
      } catch (error) {
        const failure = error instanceof RegistryFailure ? error : new RegistryFailure(String(error), 0, 0, error)
        this.#failed(failure, `records wait for the schema ${id}`)
        if (this.#closed || clock.monotonic() + pauseMs >= until) {
          const message = `The schema ${id} could not be had from the registry ${shownUrl} within ${giveUpAfterMs} ms: ${failure.message}.`
          return { type: 'failed', id, message, againAfterMs }
        }
      }
      await this.#pause(pauseMs)
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#o.timers.after(ms, resolve))
  }

  /** Said once for each cause, not at each attempt. */
  #failed({ message }: RegistryFailure, what = 'the application cannot start'): void {
    if (this.#trouble === message) return
    this.#trouble = message
    this.#o.log(
      'warn',
      `the schema registry ${this.#o.shownUrl} does not give what is asked, ${what}: ${message}; it is tried again`,
    )
  }

  #recovered(): void {
    if (this.#trouble === undefined) return
    this.#trouble = undefined
    this.#o.log('info', `the schema registry ${this.#o.shownUrl} answers again`)
  }

  #remember(): void {
    this.#o.remember({ schemas: [...this.#known.values()], own: [...this.#own] })
  }
}

/** Those that the own schema itself imports: what nobody else does, and what its text names. */
function directly(need: SchemaNeed, references: readonly SchemaReference[]): SchemaReference[] {
  const byOthers = new Set((need.imports ?? []).flatMap(({ uses }) => uses ?? []))
  return references.filter(({ name }) => !byOthers.has(name) || need.text?.includes(JSON.stringify(name)))
}

function problemsBetween(own: Parameters<typeof schemaProblems>[1], newest: KnownSchema): string[] {
  try {
    return schemaProblems(newest.type, own, newest)
  } catch (cause) {
    return [`that is no schema of the format ${newest.type}: ${messageOf(cause)}`]
  }
}

function isSameText(a: string, b: string): boolean {
  if (a.trim() === b.trim()) return true
  try {
    return JSON.stringify(JSON.parse(a)) === JSON.stringify(JSON.parse(b))
  } catch {
    return false
  }
}

/** One need for each schema of a subject; it writes where any of them does. */
function merged(needs: readonly SchemaNeed[]): SchemaNeed[] {
  const byKey = new Map<string, SchemaNeed>()
  for (const need of needs) {
    const key = needKey(need)
    const known = byKey.get(key)
    if (known === undefined || (need.writes && !known.writes)) byKey.set(key, need)
  }
  return [...byKey.values()]
}

function missing({ subject, where, text }: SchemaNeed, url: string): EngineError {
  const what =
    text === null
      ? `whose newest schema ${where} takes, does not exist`
      : `does not hold the schema with which ${where} writes`
  return new EngineError(
    'SCHEMA_REFUSED',
    `the subject ${subject}${text === null ? ',' : ''} ${what} in the registry ${url}; register the schema, or have the application do it with register: 'on-start'`,
  )
}

function refused({ subject, where }: SchemaNeed, problems: readonly string[]): EngineError {
  return new EngineError(
    'SCHEMA_REFUSED',
    `the schema of ${where} does not fit those under ${subject}: ${problems.slice(0, 5).join('; ')}`,
  )
}
