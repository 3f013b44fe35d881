/** What a program may write for the keys of the table: the types follow the rows, as the parser does. */
import type { Duration } from '../base/duration.ts'
import type { clientRows } from './table-clients.ts'
import type { engineRows } from './table-engine.ts'
import type { haRows } from './table-ha.ts'
import type { runtimeRows } from './table-runtime.ts'

/** The table by its parts: what is published would have every row twice otherwise. */
type Rows = typeof engineRows & typeof haRows & typeof clientRows & typeof runtimeRows

/** By the type of a row what may be written. Text may stand for numbers, as where environment variables have it. */
interface Inputs<Row> {
  readonly int: number | `${number}`
  readonly number: number | `${number}`
  readonly duration: Duration
  readonly bytes: number | string
  readonly boolean: boolean | 'true' | 'false'
  readonly enum: Row extends { readonly values: ReadonlyArray<infer V> } ? V | ('off' extends V ? false : never) : never
  readonly list: string | ReadonlyArray<string | number>
  readonly string: string | number | boolean
}

/**
 * The keys below a path, which ends in a dot or is empty, by what follows it. The type of a value stands here without a
 * name of its own: an error then shows what a key takes instead of the row.
 */
type Leaves<Path extends string> = {
  readonly [K in keyof Rows as K extends `${Path}${infer Rest}` ? Rest : never]?:
    | Inputs<Rows[K]>[Rows[K]['type']]
    | (Rows[K] extends { readonly nullable: true } ? null : never)
    | undefined
}

/** Every part of a key that ends before a dot: `a` and `a.b` of `a.b.c`. */
type Heads<Key extends string> = Key extends `${infer Head}.${infer Tail}` ? Head | `${Head}.${Heads<Tail>}` : never

/** Kafka's own names below `broker.`: a file that several programs read has them. */
type KafkasOwn = 'sasl' | 'ssl' | 'oauth' | 'security'
type OpenSection = 'consumer.' | 'producer.' | 'admin.' | 'schema-registry.' | `broker.${KafkasOwn}.`

/** What passes without a row. */
type PassedThrough<Path extends string> = Path extends `${OpenSection}${string}`
  ? { readonly [option: string]: unknown }
  : Path extends 'broker.'
    ? { readonly [Option in Exclude<KafkasOwn, 'sasl'> | `${KafkasOwn}.${string}`]?: unknown }
    : unknown

/** What may hold keys as an object. Null is what a branch is whose lines are commented out. */
type Branches<Path extends string> = {
  readonly [Head in Heads<keyof Leaves<Path> & string>]?: Below<`${Path}${Head}.`> | null | undefined
}

type Below<Path extends string> = Leaves<Path> & Branches<Path> & PassedThrough<Path>

/** The same from the outermost level, where `admin` has no row that would make it a branch. */
type ClientOptions = {
  readonly [Option in
    | `${'consumer' | 'producer' | 'admin' | 'schema-registry'}.${string}`
    | `broker.${KafkasOwn}.${string}`
    | `broker.${Exclude<KafkasOwn, 'sasl'>}`]?: unknown
} & { readonly [Section in 'admin']?: { readonly [option: string]: unknown } | null | undefined }

/**
 * The configuration as a program writes it: keys of [the configuration page](../config.md) with their dots, nested
 * (`{ engine: { lanes: { count: 2 } } }`), or both. All may be left out, and `undefined` is left out too. A key that is none
 * does not compile, nor does a value that its key does not take.
 *
 * Durations are milliseconds or text (`'10s'`), sizes are bytes or text (`'64MiB'`), lists are arrays or text with commas, and
 * a number may stand as text (`'2'`). Null unsets a key that may be unset. Of `consumer.`, `producer.`, `admin.` and
 * `schema-registry.` further options are taken, as other clients have them.
 *
 * @example
 * const config: ConfigInput = {
 *   'engine.lanes.count': 2,
 *   'errors.processing': 'dead-letter',
 *   'commit-barrier.interval-ms': '50ms',
 *   runtime: { http: { port: 8081 } },
 * }
 * const app = defineApp({ applicationId: 'orders', config, build: (topology) => topology.stream('orders').to('copies') })
 */
export type ConfigInput = Leaves<''> & Branches<''> & ClientOptions
