import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { renewLicenseDocs } from '../../../scripts/docs-license.ts'
import { configKeys } from '../../../src/config/table.ts'
import { EndWarnings } from '../../../src/license/end-warnings.ts'
import { blockingStatuses, licenseStatuses, nextStatus } from '../../../src/license/status.ts'
import { leaseStatuses } from '../../../src/license/token.ts'

const pageOf = (name: string): string => readFileSync(new URL(`../../../docs/${name}`, import.meta.url), 'utf8')
const dayMs = 86_400_000

test('docs/license.md shows the transitions, statuses and keys there are; `node scripts/docs-license.ts` renews it', () => {
  const page = pageOf('license.md')
  assert.equal(page, renewLicenseDocs(page))
  assert.ok(page.includes('| `PENDING`, `VALID`, `GRACE_PERIOD`, `EXPIRED` | failed | ended | `EXPIRED` |'))
  const keys = configKeys.filter((key) => key.startsWith('license.'))
  for (const name of [...licenseStatuses, ...leaseStatuses, ...keys]) assert.ok(page.includes(`\`${name}\``), name)
})

test('the pages tell the end of a license as it is: warnings on their days before, and no grace behind it', () => {
  const warnings = new EndWarnings()
  const days = Array.from({ length: 60 }, (_, i) => 60 - i).filter((left) => warnings.at(0, left * dayMs) !== undefined)
  const told = `${days.slice(0, -1).join(', ')} and ${days.at(-1)}`
  const [config, license] = [pageOf('config.md'), pageOf('license.md')]
  assert.ok(config.includes(`warnings come ${told} days before`), told)
  assert.ok(license.includes(`when ${told} days are left`), told)
  const facts = {
    nowMs: 10 * dayMs,
    expiresAtMs: 10 * dayMs,
    coveredUntilMs: 11 * dayMs,
    failingSinceMs: null,
    gracePeriodMs: 7 * dayMs,
  }
  assert.equal(nextStatus('VALID', 'time passed', facts), 'EXPIRED')
  assert.ok(config.includes('Its own expiry knows no grace: readiness goes DOWN at once'))
  for (const status of licenseStatuses) {
    const row = license
      .split('\n')
      .find((line) => line.startsWith(`| \`${status}\` |`) && /\| (UP|DOWN) \|$/.test(line))
    assert.equal(row?.endsWith('| DOWN |'), blockingStatuses.includes(status), status)
  }
})
