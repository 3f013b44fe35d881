/** Code in documents and in TSDoc is type-checked like any other, and applications in it are compiled. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { type Application, isApplication } from '../../src/dsl/app.ts'
import type { Topology } from '../../src/index.ts'
import { repositoryRoot } from '../groups.ts'
import { play, playable, scriptOf } from './play.ts'
import { compilable, documentSnippets, type Example, examples } from './snippets.ts'

/** Inside the repository, so that `millrace` resolves as it does for an application. */
const folder = join(repositoryRoot, '.cache', `fences-${process.pid}`)

const snippets = [...documentSnippets(), ...examples().map(compilable)]
const played = examples().filter(({ text }) => scriptOf(text).results.length > 0)
const playedFile = (example: Example): string => `play-${example.file}`

function typeErrors(): string[] {
  const options = { extends: '../../tsconfig.json', include: ['*.ts'] }
  const unused = { noUnusedLocals: false, noUnusedParameters: false }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...options, compilerOptions: unused }))
  const compiler = join(repositoryRoot, 'node_modules', 'typescript', 'bin', 'tsc')
  const { stdout } = spawnSync(process.execPath, [compiler, '-p', folder], { encoding: 'utf8', cwd: folder })
  const errors = stdout.split('\n').filter((line) => line.includes('error TS'))
  return errors.filter((line) => !line.startsWith('../..'))
}

describe('code in documents', () => {
  before(() => {
    mkdirSync(folder, { recursive: true })
    for (const { file, code } of snippets) writeFileSync(join(folder, file), code)
    for (const example of played) writeFileSync(join(folder, playedFile(example)), playable(example))
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

  for (const example of played) {
    test(`gives what it says: ${example.place}`, async () => {
      const module = (await import(pathToFileURL(join(folder, playedFile(example))).href)) as {
        readonly build: (topology: Topology, print: (value: unknown) => void) => void
      }
      const { actual, expected } = await play(module.build, scriptOf(example.text))
      assert.deepEqual(actual, expected, example.text)
    })
  }
})
