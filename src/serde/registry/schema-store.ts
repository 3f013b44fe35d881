/** The schemas that one thread knows: what was prepared before the start, and what was asked for since. */
import { type KnownSchema, needKey, type SchemaLink, type SchemaNeed } from '../schemas.ts'
import { SerdeError, SerdeWaits } from '../serde.ts'

/** What whoever talks to the registry tells a thread. Plain data. */
export type SchemaAnswer =
  | {
      readonly type: 'prepared'
      readonly schemas: readonly KnownSchema[]
      /** The application's own schemas, by the key of their need. */
      readonly own: ReadonlyArray<readonly [key: string, id: number]>
    }
  | { readonly type: 'schema'; readonly schema: KnownSchema }
  /** It was tried for as long as it may be: records that need it are not waited for, until it is worth trying again. */
  | { readonly type: 'failed'; readonly id: number; readonly message: string; readonly againAfterMs: number }

interface Wait {
  readonly promise: Promise<void>
  readonly resolve: () => void
}

export class SchemaStore implements SchemaLink {
  readonly #ask: (id: number) => void
  readonly #now: () => number
  readonly #known = new Map<number, KnownSchema>()
  readonly #own = new Map<string, KnownSchema>()
  readonly #waits = new Map<number, Wait>()
  readonly #failed = new Map<number, { readonly message: string; readonly untilMs: number }>()

  /** `ask` is called once for each unknown id; `take` gets the answer. `now` is a monotonic clock, in milliseconds. */
  constructor(ask: (id: number) => void, now: () => number) {
    this.#ask = ask
    this.#now = now
  }

  take(answer: SchemaAnswer): void {
    switch (answer.type) {
      case 'prepared':
        for (const schema of answer.schemas) this.#learn(schema)
        for (const [key, id] of answer.own) this.#own.set(key, this.#known.get(id) as KnownSchema)
        return
      case 'schema':
        this.#learn(answer.schema)
        return
      case 'failed':
        this.#failed.set(answer.id, { message: answer.message, untilMs: this.#now() + answer.againAfterMs })
        this.#settle(answer.id)
    }
  }

  #learn(schema: KnownSchema): void {
    this.#known.set(schema.id, schema)
    this.#failed.delete(schema.id)
    this.#settle(schema.id)
  }

  #settle(id: number): void {
    this.#waits.get(id)?.resolve()
    this.#waits.delete(id)
  }

  schema(id: number): KnownSchema {
    const known = this.#known.get(id)
    if (known !== undefined) return known
    const failed = this.#failed.get(id)
    if (failed !== undefined) {
      if (this.#now() < failed.untilMs) throw new SerdeError(failed.message)
      this.#failed.delete(id)
    }
    let wait = this.#waits.get(id)
    if (wait === undefined) {
      wait = Promise.withResolvers<void>()
      this.#waits.set(id, wait)
      this.#ask(id)
      // A registry in this very thread has answered already.
      if (!this.#waits.has(id)) return this.#known.get(id) ?? this.#refuse(id)
    }
    throw new SerdeWaits(`The schema ${id} is not known yet: the registry is asked for it.`, wait.promise)
  }

  #refuse(id: number): never {
    throw new SerdeError(this.#failed.get(id)?.message ?? `The schema ${id} cannot be had.`)
  }

  own(need: SchemaNeed): KnownSchema {
    const known = this.#own.get(needKey(need))
    if (known !== undefined) return known
    throw new SerdeError(
      `The schema of ${need.subject} was not prepared: its serde is not one of those that the topology names.`,
    )
  }
}
