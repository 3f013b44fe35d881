import assert from 'node:assert/strict'
import type { Answer } from './client.ts'

export const jsonType = 'application/json; charset=utf-8'
export const textType = 'text/plain; charset=utf-8'
export const yamlType = 'text/yaml; charset=utf-8'
export const metricsType = 'text/plain; version=0.0.4; charset=utf-8'

/** What every answer of this interface carries. */
export function expectCommonHeaders(answer: Answer): void {
  assert.equal(answer.headers['x-content-type-options'], 'nosniff')
  assert.equal(answer.headers['cache-control'], 'no-store')
  const cors = Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'))
  assert.deepEqual(cors, [])
}

/** A refusal: its status, and a body with the single key `error` that is a sentence. */
export function expectError(answer: Answer, status: number, saying?: RegExp): void {
  assert.equal(answer.status, status, answer.body)
  assert.equal(answer.headers['content-type'], jsonType)
  assert.deepEqual(Object.keys(answer.json), ['error'])
  const sentence = String(answer.json.error)
  assert.ok(sentence.length > 10, sentence)
  if (saying) assert.match(sentence, saying)
  expectCommonHeaders(answer)
}

export function expectJson(answer: Answer, status = 200): void {
  assert.equal(answer.status, status, answer.body)
  assert.equal(answer.headers['content-type'], jsonType)
  expectCommonHeaders(answer)
}

/** Has at least these keys. */
export function expectKeys(value: unknown, keys: readonly string[]): void {
  const missing = keys.filter((key) => !(key in (value as object)))
  assert.deepEqual(missing, [], JSON.stringify(value))
}

/** `…Iso` is the ISO 8601 rendering of `…Ms`, or both are null. */
export function expectIso(value: unknown, name: string): void {
  const fields = value as Readonly<Record<string, unknown>>
  const ms = fields[`${name}Ms`]
  const iso = fields[`${name}Iso`]
  if (ms === null) assert.equal(iso, null)
  else {
    assert.ok(Number.isInteger(ms), `${name}Ms is ${String(ms)}`)
    assert.match(String(iso), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/)
    assert.equal(Date.parse(String(iso)), ms)
  }
}
