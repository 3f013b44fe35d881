import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { renewLicenseDocs } from '../../../scripts/docs-license.ts'
import { configKeys } from '../../../src/config/table.ts'
import { licenseStatuses } from '../../../src/license/status.ts'
import { leaseStatuses } from '../../../src/license/token.ts'

test('docs/license.md shows the transitions, statuses and keys there are; `node scripts/docs-license.ts` renews it', () => {
  const page = readFileSync(new URL('../../../docs/license.md', import.meta.url), 'utf8')
  assert.equal(page, renewLicenseDocs(page))
  assert.ok(page.includes('| `PENDING`, `VALID`, `GRACE_PERIOD`, `EXPIRED` | failed | ended | `EXPIRED` |'))
  const keys = configKeys.filter((key) => key.startsWith('license.'))
  for (const name of [...licenseStatuses, ...leaseStatuses, ...keys]) assert.ok(page.includes(`\`${name}\``), name)
})
