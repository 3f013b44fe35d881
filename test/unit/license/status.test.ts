import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import {
  conditionOf,
  type LicenseCondition,
  type LicenseEvent,
  type LicenseFacts,
  type LicenseStatus,
  licenseConditions,
  licenseEvents,
  licenseStatuses,
  licenseTransitions,
  nextStatus,
} from '../../../src/license/status.ts'

const events = Object.keys(licenseEvents) as LicenseEvent[]
const conditions = Object.keys(licenseConditions) as LicenseCondition[]

const now = 1_000_000
const factsFor: Readonly<Record<LicenseCondition, LicenseFacts>> = {
  ended: { nowMs: now, expiresAtMs: now, coveredUntilMs: now + 1, failingSinceMs: null, gracePeriodMs: 100 },
  covered: { nowMs: now, expiresAtMs: now + 1, coveredUntilMs: now + 1, failingSinceMs: 5, gracePeriodMs: 100 },
  'in grace': { nowMs: now, expiresAtMs: null, coveredUntilMs: now - 99, failingSinceMs: 5, gracePeriodMs: 100 },
  'grace over': { nowMs: now, expiresAtMs: null, coveredUntilMs: now - 100, failingSinceMs: 5, gracePeriodMs: 100 },
}

/** What every cell of the table must be, written down a second time: status → event → to, for the four conditions in order. */
const standing: readonly LicenseStatus[] = ['EXPIRED', 'VALID', 'GRACE_PERIOD', 'EXPIRED']
const all = (status: LicenseStatus): readonly LicenseStatus[] => [status, status, status, status]
const expected: Readonly<Record<LicenseStatus, Readonly<Record<LicenseEvent, readonly LicenseStatus[]>>>> = {
  PENDING: {
    accepted: standing,
    refused: all('INVALID'),
    revoked: all('REVOKED'),
    failed: standing,
    'time passed': all('PENDING'),
  },
  VALID: {
    accepted: standing,
    refused: all('INVALID'),
    revoked: all('REVOKED'),
    failed: standing,
    'time passed': standing,
  },
  GRACE_PERIOD: {
    accepted: standing,
    refused: all('INVALID'),
    revoked: all('REVOKED'),
    failed: standing,
    'time passed': standing,
  },
  EXPIRED: {
    accepted: standing,
    refused: all('INVALID'),
    revoked: all('REVOKED'),
    failed: standing,
    'time passed': standing,
  },
  REVOKED: {
    accepted: standing,
    refused: all('REVOKED'),
    revoked: all('REVOKED'),
    failed: all('REVOKED'),
    'time passed': all('REVOKED'),
  },
  INVALID: {
    accepted: standing,
    refused: all('INVALID'),
    revoked: all('REVOKED'),
    failed: all('INVALID'),
    'time passed': all('INVALID'),
  },
  NO_KEY: {
    accepted: all('NO_KEY'),
    refused: all('NO_KEY'),
    revoked: all('NO_KEY'),
    failed: all('NO_KEY'),
    'time passed': all('NO_KEY'),
  },
}

describe('every transition', () => {
  for (const from of licenseStatuses) {
    for (const event of events) {
      conditions.forEach((condition, i) => {
        const to = expected[from][event][i] as LicenseStatus
        test(`${from}, ${event}, ${condition}: ${to}`, () => {
          assert.equal(conditionOf(factsFor[condition]), condition)
          assert.equal(nextStatus(from, event, factsFor[condition]), to)
        })
      })
    }
  }
})

test('exactly one row of the table holds for each status, event and condition', () => {
  for (const from of licenseStatuses) {
    for (const event of events) {
      for (const condition of conditions) {
        const rows = licenseTransitions.filter(
          (row) =>
            row.from.includes(from) && row.on.includes(event) && (row.when === undefined || row.when === condition),
        )
        assert.equal(rows.length, 1, `${from}, ${event}, ${condition}`)
      }
    }
  }
})

const instant = fc.option(fc.integer({ min: 0, max: 1000 }), { nil: null })
const facts: fc.Arbitrary<LicenseFacts> = fc.record({
  nowMs: fc.integer({ min: 0, max: 1000 }),
  expiresAtMs: instant,
  coveredUntilMs: instant,
  failingSinceMs: instant,
  gracePeriodMs: fc.integer({ min: 0, max: 500 }),
})
const history = fc.array(fc.tuple(fc.constantFrom(...events), facts), { maxLength: 40 })

test('no order of events leads to a status that the table does not give', () => {
  fc.assert(
    fc.property(fc.constantFrom<LicenseStatus>('PENDING', 'NO_KEY'), history, (start, steps) => {
      let status = start
      for (const [event, known] of steps) {
        const column = conditions.indexOf(conditionOf(known))
        const to = nextStatus(status, event, known)
        assert.equal(to, expected[status][event][column])
        status = to
      }
    }),
    { numRuns: 2000 },
  )
})

test('what must hold of every history', () => {
  fc.assert(
    fc.property(history, (steps) => {
      let status: LicenseStatus = 'PENDING'
      let last: LicenseEvent | undefined
      for (const [event, known] of steps) {
        const from: LicenseStatus = status
        status = nextStatus(from, event, known)
        last = event
        if (from !== 'PENDING') assert.notEqual(status, 'PENDING', 'PENDING is never come back to')
        assert.notEqual(status, 'NO_KEY', 'a key does not vanish')
        const ended = known.expiresAtMs !== null && known.nowMs >= known.expiresAtMs
        if (ended) assert.ok(status !== 'VALID' && status !== 'GRACE_PERIOD', 'an expired license never counts')
        if (from === 'REVOKED' && status !== 'REVOKED') assert.equal(last, 'accepted', 'only an answer undoes REVOKED')
        if (status === 'REVOKED' && from !== 'REVOKED') assert.equal(last, 'revoked')
        if (status === 'INVALID' && from !== 'INVALID') assert.equal(last, 'refused')
      }
    }),
    { numRuns: 2000 },
  )
})
