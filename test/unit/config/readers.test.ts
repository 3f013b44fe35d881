import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { configKeys, rowOf } from '../../../src/config/table.ts'

/** Keys whose readers are still to come; a key that does nothing must stand here or not at all. */
const waiting = [/^ha\.(?!mode$)/, /^schema-registry\.url$/]

test('every key is read by something', () => {
  const source = join(import.meta.dirname, '..', '..', '..', 'src')
  const text = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.startsWith('config'))
    .map((name) => readFileSync(join(source, name), 'utf8'))
    .join('\n')
  const files = new Set(configKeys.map((key) => rowOf(key).fromFile))
  const unread = configKeys.filter(
    (key) =>
      !text.includes(`'${key}'`) &&
      !rowOf(key).acceptedIgnored &&
      !files.has(key) &&
      !waiting.some((pattern) => pattern.test(key)),
  )
  assert.deepEqual(unread, [])
})
