import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { routes } from '../../src/http/routes.ts'
import { sections } from './rows/index.ts'
import { elsewhere, rules } from './rules.ts'

const rows = Object.values(sections).flat()

describe('the conformance suite', () => {
  test('has a row for every rule of the specification and every reading', () => {
    const checked = new Set<string>(rows.flatMap((row) => row.rules))
    const missing = Object.keys(rules).filter((rule) => !checked.has(rule) && !(rule in elsewhere))
    assert.deepEqual(missing, [])
  })

  test('names tests that exist for the rules that are proved elsewhere', () => {
    const folder = new URL('../../', import.meta.url)
    for (const [rule, path] of Object.entries(elsewhere)) {
      assert.ok(readFileSync(new URL(path, folder), 'utf8').includes(`[${rule}]`), `${path} does not name [${rule}]`)
    }
  })

  test('covers all readings there are', () => {
    const readings = Object.keys(rules).filter((rule) => /^R\d+$/.test(rule))
    assert.deepEqual(
      readings,
      Array.from({ length: 51 }, (_, i) => `R${i + 1}`),
    )
  })

  test('asks every endpoint', () => {
    const folder = new URL('rows/', import.meta.url)
    const text = readdirSync(folder)
      .map((file) => readFileSync(new URL(file, folder), 'utf8'))
      .join('\n')
    assert.deepEqual(
      routes.map((route) => route.path).filter((path) => !text.includes(`'${path}`)),
      [],
    )
  })

  test('gives every row a name of its own', () => {
    const names = Object.entries(sections).flatMap(([section, list]) => list.map((row) => `${section}: ${row.name}`))
    assert.equal(new Set(names).size, names.length)
  })
})
