import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { lifecycleStates } from '../../src/view/view.ts'
import { routes } from '../../src/http/routes/routes.ts'
import { sections } from './rows/index.ts'
import { elsewhere, needPods, type RuleId, rules } from './rules.ts'
import { runsOn } from './support/run-rows.ts'
import { runtimeSubject } from './support/runtime-subject.ts'

const rows = Object.values(sections).flat()
const subject = runtimeSubject()

describe('the conformance suite', () => {
  test('has a row for every rule of the specification and every reading', () => {
    const checked = new Set<string>(rows.flatMap((row) => row.rules))
    const missing = Object.keys(rules).filter((rule) => !checked.has(rule) && !(rule in elsewhere))
    assert.deepEqual(missing, [])
  })

  test('proves every rule on the running engine, save what needs several processes', () => {
    const real = rows.filter((row) => runsOn(subject, row))
    const checked = new Set<string>(real.flatMap((row) => row.rules))
    const missing = (Object.keys(rules) as RuleId[]).filter((rule) => !checked.has(rule) && !(rule in elsewhere))
    assert.deepEqual(
      missing.filter((rule) => !needPods.has(rule)),
      [],
    )
    assert.deepEqual(
      [...needPods].filter((rule) => !missing.includes(rule)),
      [],
      'rules that the running engine proves by now need no exception',
    )
  })

  test('asks every endpoint of the running engine in every state', () => {
    const asked = new Set(rows.filter((row) => runsOn(subject, row)).map((row) => row.name))
    const missing = lifecycleStates
      .filter((state) => state !== 'STANDBY')
      .flatMap((state) => routes.filter(({ gate }) => gate !== 'ha').map((route) => [route, state] as const))
      .map(([route, state]) => `${route.method} ${route.path} keeps its word in ${state}`)
      .filter((name) => !asked.has(name))
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
