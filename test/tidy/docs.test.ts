import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { errorsPage, renderErrors } from '../../scripts/docs-errors.ts'
import { errorTable } from '../../src/base/errors.ts'
import { sourcesBelow } from './sources.ts'

describe('the page of errors', () => {
  test('is what its generator writes', () => {
    assert.equal(readFileSync(errorsPage, 'utf8'), renderErrors(), 'run `node scripts/docs-errors.ts`')
  })

  test('names every code of the table and no other', () => {
    const named = [...readFileSync(errorsPage, 'utf8').matchAll(/^\| `([A-Z_]+)` \|/gm)].map((match) => match[1])
    assert.deepEqual(named, Object.keys(errorTable))
  })

  test('names only errors that the engine raises', () => {
    const code = sourcesBelow('src')
      .filter((file) => file.path !== 'src/base/errors.ts')
      .map((file) => file.code)
      .join('\n')
    const unused = Object.keys(errorTable).filter((name) => !code.includes(`'${name}'`))
    assert.deepEqual(unused, [], 'raise it, or take it out of src/base/errors.ts')
  })
})
