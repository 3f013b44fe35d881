import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { renderConfigDocs } from '../../../scripts/docs-config.ts'
import { configKeys } from '../../../src/config/table.ts'

test('docs/config.md is what the table says; `node scripts/docs-config.ts` renews it', () => {
  const page = readFileSync(new URL('../../../docs/config.md', import.meta.url), 'utf8')
  assert.equal(page, renderConfigDocs())
  for (const key of configKeys) assert.ok(page.includes(`\`${key}\``), key)
})
