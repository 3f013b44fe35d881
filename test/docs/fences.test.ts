/** Code in documents and in TSDoc is type-checked like any other, and applications in it are compiled. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { type Application, isApplication } from '../../src/dsl/app.ts'
import { filesBelow, repositoryRoot } from '../groups.ts'

/** Inside the repository, so that `millrace` resolves as it does for an application. */
const folder = join(repositoryRoot, '.cache', `fences-${process.pid}`)

interface Snippet {
  /** Where it stands, for messages. */
  readonly place: string
  readonly file: string
  readonly code: string
}

/** What examples may mention without saying where it comes from. */
const prelude = `
import {
  defineApp, hopping, keyValueStore, serdes, session, sliding, tumbling, withRetry,
  type GlobalTable, type StandardSchema, type Stream, type Table, type Topology, type Windowed,
} from 'millrace'
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type Runtime, startEmbeddedBroker, startRuntime } from 'millrace/runtime'
import { TopologyTestDriver } from 'millrace/testing'
interface Order { readonly id: string; readonly customer: string; readonly amount: number; readonly product: string }
interface Flight { readonly origin: string; readonly delay: number }
interface User { readonly name: string; readonly city: string }
declare const topology: Topology
declare const orders: Stream<string, Order>
declare const stream: Stream<string, Order>
declare const flights: Stream<string, Flight>
declare const users: Table<string, User>
declare const counts: Table<Windowed<string>, number>
declare const runtime: Runtime
declare function ping(): Promise<boolean>
declare const app: ReturnType<typeof defineApp>
declare const z: { object<T>(shape: T): StandardSchema<{ id: string; amount: number }>; string(): string; number(): number }
`

function documentSnippets(): Snippet[] {
  const documents = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', ...filesBelow('docs', '.md')]
  return documents.flatMap((document) => {
    const text = readFileSync(join(repositoryRoot, document), 'utf8')
    return [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map((match, i) => ({
      place: `${document}, block ${i + 1}`,
      file: `${document.replaceAll(/\W+/g, '-')}-${i + 1}.ts`,
      code: `${match[1] as string}\nexport {}\n`,
    }))
  })
}

const publicFolders = ['src/dsl', 'src/serde', 'src/runtime', 'src/testing']

function tsdocSnippets(): Snippet[] {
  return publicFolders
    .flatMap((path) => filesBelow(path, '.ts'))
    .flatMap((path) => {
      const text = readFileSync(join(repositoryRoot, path), 'utf8')
      return [...text.matchAll(/@example\s*\n((?:\s*\*(?!\/)(?! @).*\n)+)/g)].map((match, i) => {
        const code = (match[1] as string).replaceAll(/^\s*\* ?/gm, '').replaceAll(/^```\w*$/gm, '')
        const whole = /^(export|import) /m.test(code)
        return {
          place: `${path}, example ${i + 1}`,
          file: `${path.replaceAll(/\W+/g, '-')}-${i + 1}.ts`,
          code: whole ? `${prelude}\n${code}` : `${prelude}\nexport async function example() {\n${code}\n}\n`,
        }
      })
    })
}

const snippets = [...documentSnippets(), ...tsdocSnippets()]

function typeErrors(): string[] {
  const options = { extends: '../../tsconfig.json', include: ['*.ts'] }
  const unused = { noUnusedLocals: false, noUnusedParameters: false }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...options, compilerOptions: unused }))
  const compiler = join(repositoryRoot, 'node_modules', '.bin', 'tsc')
  const { stdout } = spawnSync(compiler, ['-p', folder], { encoding: 'utf8', cwd: folder })
  const errors = stdout.split('\n').filter((line) => line.includes('error TS'))
  return errors.filter((line) => !line.startsWith('../..'))
}

describe('code in documents', () => {
  before(() => {
    mkdirSync(folder, { recursive: true })
    for (const { file, code } of snippets) writeFileSync(join(folder, file), code)
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  test('is there', () => {
    assert.ok(snippets.length >= 10, `found ${snippets.length} pieces of code`)
  })

  test('has the types that it needs', () => {
    const places = new Map(snippets.map(({ file, place }) => [file, place]))
    const errors = typeErrors().map((line) => line.replace(/^[^(]+/, (file) => places.get(file) ?? file))
    assert.deepEqual(errors, [])
  })

  for (const { place, file, code } of snippets) {
    if (place.startsWith('docs/') && code.includes("from 'millrace/testing'")) {
      test(`runs, and its assertions hold: ${place}`, async () => {
        await import(pathToFileURL(join(folder, file)).href)
      })
      continue
    }
    if (!/export default defineApp/.test(code)) continue
    test(`describes an application that compiles: ${place}`, async () => {
      const module = (await import(pathToFileURL(join(folder, file)).href)) as { readonly default: unknown }
      assert.ok(isApplication(module.default))
      const topology = (module.default as Application).compile()
      assert.ok(topology.sources.length > 0)
    })
  }
})
