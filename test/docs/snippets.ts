/** The code in documents and in TSDoc, as modules that can be compiled. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { filesBelow, repositoryRoot } from '../groups.ts'

export interface Snippet {
  /** Where it stands, for messages. */
  readonly place: string
  readonly file: string
  readonly code: string
}

/** An `@example` of TSDoc. */
export interface Example {
  readonly place: string
  readonly file: string
  /** As it stands in the comment, without its frame. */
  readonly text: string
}

export const imports = `
import {
  cloudEvents, defineApp, hopping, keyValueStore, serdes, session, sessionStore, sliding, tumbling, unlimited, versionedStore,
  windowStore, withRetry, compile, describeText, describeTopology, EngineError, isApplication,
  type GlobalTable, type KeyValueStore, type ReadOnlyKeyValueStore, type Serde, type StandardSchema, type Stream, type Table, type Topology, type Windowed,
} from 'millrace'
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type Runtime, startEmbeddedBroker, startRuntime } from 'millrace/runtime'
import { avro, EmbeddedRegistry, jsonSchema, protobuf } from 'millrace/registry'
import type { DescMessage } from '@bufbuild/protobuf'
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt'
import { TopologyTestDriver } from 'millrace/testing'
interface Order { readonly id: string; readonly customer: string; readonly amount: number; readonly product: string }
interface Payment { readonly amount: number }
interface Flight { readonly origin: string; readonly delay: number }
interface Click { readonly page: string }
interface User { readonly name: string; readonly city: string }
interface Product { readonly name: string; readonly price: number }
declare const z: { object<T>(shape: T): StandardSchema<{ id: string; amount: number }>; string(): string; number(): number }
`

/**
 * What examples may mention without saying where it comes from: each with its type, and with what makes it where the example is
 * run. Every source has the topic of its name.
 */
export const givens: Readonly<Record<string, { readonly type: string; readonly made: string }>> = {
  orders: { type: 'Stream<string, Order>', made: "topology.stream('orders', { value: serdes.json<Order>() })" },
  payments: { type: 'Stream<string, Payment>', made: "topology.stream('payments', { value: serdes.json<Payment>() })" },
  flights: { type: 'Stream<string, Flight>', made: "topology.stream('flights', { value: serdes.json<Flight>() })" },
  clicks: { type: 'Stream<string, Click>', made: "topology.stream('clicks', { value: serdes.json<Click>() })" },
  users: { type: 'Table<string, User>', made: "topology.table('users', { value: serdes.json<User>() })" },
  prices: { type: 'Table<string, number>', made: "topology.table('prices', { value: serdes.json<number>() })" },
  products: {
    type: 'GlobalTable<string, Product>',
    made: "topology.globalTable('products', { value: serdes.json<Product>() })",
  },
}

const prelude = `${imports}
declare const topology: Topology
${Object.entries(givens)
  .map(([name, { type }]) => `declare const ${name}: ${type}`)
  .join('\n')}
declare const runtime: Runtime
declare const orderSchema: object
declare const OrderSchema: DescMessage
declare const PaidSchema: DescMessage
declare function ping(): Promise<boolean>
declare function print(value: unknown): void
declare const app: ReturnType<typeof defineApp>
`

/** Its blocks are files of one project, which `tutorial.test.ts` makes and compiles. */
const ownTest = 'docs/guide/tutorial.md'

export function documentSnippets(): Snippet[] {
  const documents = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', ...filesBelow('docs', '.md')]
  return documents
    .filter((document) => document !== ownTest)
    .flatMap((document) => {
      const text = readFileSync(join(repositoryRoot, document), 'utf8')
      return [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map((match, i) => ({
        place: `${document}, block ${i + 1}`,
        file: `${document.replaceAll(/\W+/g, '-')}-${i + 1}.ts`,
        code: `${match[1] as string}\nexport {}\n`,
      }))
    })
}

const publicSources = [
  'src/dsl/',
  'src/serde/',
  'src/runtime/',
  'src/testing/',
  'src/state/contract.ts',
  'src/base/errors.ts',
  'src/base/duration.ts',
  'src/broker/embedded/start.ts',
  'src/broker/wire/headers.ts',
  'src/topology/',
]

export function examples(): Example[] {
  return filesBelow('src', '.ts')
    .filter((path) => publicSources.some((start) => path.startsWith(start)))
    .flatMap((path) => {
      const text = readFileSync(join(repositoryRoot, path), 'utf8')
      return [...text.matchAll(/@example\s*\n((?:\s*\*(?!\/)(?! @).*\n)+)/g)].map((match, i) => ({
        place: `${path}, example ${i + 1}`,
        file: `${path.replaceAll(/\W+/g, '-')}-${i + 1}.ts`,
        text: (match[1] as string).replaceAll(/^\s*\* ?/gm, '').replaceAll(/^```\w*$/gm, ''),
      }))
    })
}

/** An example as a module that compiles; it is not meant to run. */
export function compilable({ place, file, text }: Example): Snippet {
  const whole = /^(export|import) /m.test(text)
  const code = whole ? `${prelude}\n${text}` : `${prelude}\nexport async function example() {\n${text}\n}\n`
  return { place, file, code }
}
