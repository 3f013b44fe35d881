/** What the package offers is documented where it is declared, and the reference says the same. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Declaration } from '../../scripts/api/declarations.ts'
import { readSurface } from '../../scripts/api/surface.ts'
import { apiFolder, partsOf, renderApi } from '../../scripts/docs-api.ts'
import { errorTable } from '../../src/base/errors.ts'
import { scriptOf } from './play.ts'

const surface = readSurface()
const declarations = surface.flatMap(({ exports }) => exports.map(({ declaration }) => declaration))

/** Everything that has documentation of its own, by the name under which the reference has it. */
const documented = declarations.flatMap(({ name, doc, members }) => [
  { name, doc },
  ...members.map((member) => ({ name: `${name}.${member.name}`, doc: member.doc })),
])

/** What applications are built of: every method is an operator. */
const handles = [
  'Topology',
  'Stream',
  'Table',
  'GroupedStream',
  'WindowedStream',
  'SessionWindowedStream',
  'GroupedTable',
  'CogroupedStream',
  'WindowedCogroup',
  'SessionWindowedCogroup',
]
/** Called by tools, after the topology is built. */
const noOperators = ['Topology.compile']

const windows = ['tumbling', 'hopping', 'sliding', 'session', 'unlimited']

function operators(): Array<{ readonly name: string; readonly doc: string }> {
  const methods = handles.flatMap((handle) => {
    const { members } = declarations.find(({ name }) => name === handle) as Declaration
    const called = members.filter((member) => member.kind === 'method')
    return called.map(({ name, doc }) => ({ name: `${handle}.${name}`, doc }))
  })
  return [...methods, ...documented.filter(({ name }) => windows.includes(name))]
}

describe('the public surface', () => {
  test('is found whole', () => {
    assert.deepEqual(
      surface.map(({ specifier }) => specifier),
      ['millrace', 'millrace/registry', 'millrace/runtime', 'millrace/testing'],
    )
    assert.ok(documented.length > 350, `found ${documented.length} names`)
    assert.ok(operators().length > 50, `found ${operators().length} operators`)
  })

  test('says of each export and member what it is for', () => {
    const silent = documented.filter(({ doc }) => {
      const { text, isInternal } = partsOf(doc)
      return !isInternal && !/^[A-Z0-9`].*[.…]$/s.test(text)
    })
    assert.deepEqual(
      silent.map(({ name }) => `${name} needs a sentence`),
      [],
    )
  })

  test('shows of each operator what comes out of it', () => {
    const silent = operators().filter(
      ({ name, doc }) =>
        !noOperators.includes(name) && !partsOf(doc).examples.some((example) => scriptOf(example).results.length > 0),
    )
    assert.deepEqual(
      silent.map(({ name }) => `${name} needs an @example with its result`),
      [],
    )
  })

  test('names errors by codes that exist', () => {
    const unknown = documented.flatMap(({ name, doc }) =>
      partsOf(doc).throws.flatMap((said) => {
        const [, code = ''] = /^EngineError `(\w+)`/.exec(said) ?? []
        return code in errorTable ? [] : [`${name}: @throws ${said}`]
      }),
    )
    assert.deepEqual(unknown, [])
  })

  test('has a reference that is up to date', () => {
    const pages = renderApi(surface)
    assert.deepEqual(readdirSync(apiFolder).sort(), [...pages.keys()].sort())
    for (const [name, text] of pages)
      assert.equal(readFileSync(join(apiFolder, name), 'utf8'), text, `${name} is stale: node scripts/docs.ts`)
  })
})
