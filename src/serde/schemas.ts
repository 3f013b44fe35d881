/**
 * What serdes over a schema registry ask of the thread they run in. The serdes know the formats; who talks to the registry,
 * and from which thread, is the runtime's business.
 */
export type SchemaType = 'AVRO' | 'PROTOBUF' | 'JSON'

/** When a schema of the application goes into the registry. */
export type RegisterPolicy = 'never' | 'on-start' | 'always'

/** A schema of the registry, with all that is needed to understand it. */
export interface KnownSchema {
  readonly id: number
  readonly type: SchemaType
  readonly text: string
  /** Those it refers to, each behind those that it refers to itself. */
  readonly references: ReadonlyArray<{ readonly name: string; readonly text: string }>
}

export interface ImportedSchema {
  readonly name: string
  readonly text: string
  /** Names of those that it imports itself. */
  readonly uses?: readonly string[]
}

/** What has to be known of a subject before records are processed. */
export interface SchemaNeed {
  readonly subject: string
  readonly type: SchemaType
  /** The application's own schema; null: the newest one of the subject is the application's. */
  readonly text: string | null
  /** Schemas that the own one imports, each behind those that it imports itself; they stand under their names. */
  readonly imports?: readonly ImportedSchema[]
  /** The application writes with it: an id is needed. Otherwise it only reads what others wrote. */
  readonly writes: boolean
  readonly register: RegisterPolicy
  /** What is read is not held against the schema, so that any other one will do. */
  readonly readsAnything?: boolean
  /** Where it is used, for sentences. */
  readonly where: string
}

/** The schemas that a thread knows. Both throw `SerdeWaits` for what is under way, `SerdeError` for what cannot be had. */
export interface SchemaLink {
  schema(id: number): KnownSchema
  own(need: SchemaNeed): KnownSchema
}

/** The part of a serde that uses a registry. */
export interface SchemaUser {
  needs(writes: boolean, where: string): SchemaNeed[]
  connect(link: SchemaLink): void
}

/** One need, however many places have it. */
export function needKey({ subject, type, text }: Pick<SchemaNeed, 'subject' | 'type' | 'text'>): string {
  return JSON.stringify([subject, type, text])
}
