/**
 * The license's status as a pure machine: an event and what is known at that moment give the next status. The table
 * below is all there is to it; `docs/license.md` shows it, and the tests hold the two together.
 */
export const licenseStatuses = ['PENDING', 'VALID', 'GRACE_PERIOD', 'EXPIRED', 'REVOKED', 'INVALID', 'NO_KEY'] as const
export type LicenseStatus = (typeof licenseStatuses)[number]

export const licenseEvents = {
  accepted: 'a validation succeeded: offline the key was verified, online the server answered that it counts',
  refused: 'the key or an answer is forged, malformed, replayed or meant for something else, or the server refused it',
  revoked: 'the server answered that the license is revoked',
  failed: 'a validation could not be made: the server or the public keys could not be reached',
  'time passed': 'nothing happened but that the clock went on',
} as const
export type LicenseEvent = keyof typeof licenseEvents

/** What is known when an event happens. */
export interface LicenseFacts {
  readonly nowMs: number
  /** End of the license, null while no key has been verified. */
  readonly expiresAtMs: number | null
  /** End of the server's last good answer, null where there is none (offline always). */
  readonly coveredUntilMs: number | null
  /** When the validations began to fail, null while the last one succeeded. */
  readonly failingSinceMs: number | null
  readonly gracePeriodMs: number
}

/** Of these exactly one holds at any moment. */
export const licenseConditions = {
  ended: 'the license has expired',
  covered: 'not expired; the last good answer still covers this moment, or no validation has failed since',
  'in grace': 'not expired, no longer covered; less than the grace period has passed since then',
  'grace over': 'not expired, no longer covered; the grace period has passed',
} as const
export type LicenseCondition = keyof typeof licenseConditions

/** When the grace period began or would begin, were validations to fail from now on. */
function graceFromMs(facts: LicenseFacts): number {
  return facts.coveredUntilMs ?? facts.failingSinceMs ?? facts.nowMs
}

export function graceEndsAtMs(facts: LicenseFacts): number {
  return graceFromMs(facts) + facts.gracePeriodMs
}

export function conditionOf(facts: LicenseFacts): LicenseCondition {
  if (facts.expiresAtMs !== null && facts.nowMs >= facts.expiresAtMs) return 'ended'
  const covered = facts.coveredUntilMs === null ? facts.failingSinceMs === null : facts.nowMs < facts.coveredUntilMs
  if (covered) return 'covered'
  return facts.nowMs < graceEndsAtMs(facts) ? 'in grace' : 'grace over'
}

export interface LicenseTransition {
  readonly from: readonly LicenseStatus[]
  readonly on: readonly LicenseEvent[]
  /** Any condition where it is left out. */
  readonly when?: LicenseCondition
  /** `same`: the status stays. */
  readonly to: LicenseStatus | 'same'
}

const keyed = ['PENDING', 'VALID', 'GRACE_PERIOD', 'EXPIRED', 'REVOKED', 'INVALID'] as const
/** Statuses that follow the clock and failing validations; the others need an answer to be left. */
const standing = ['VALID', 'GRACE_PERIOD', 'EXPIRED'] as const

export const licenseTransitions: readonly LicenseTransition[] = [
  { from: ['NO_KEY'], on: ['accepted', 'refused', 'revoked', 'failed', 'time passed'], to: 'same' },
  { from: keyed, on: ['accepted'], when: 'ended', to: 'EXPIRED' },
  { from: keyed, on: ['accepted'], when: 'covered', to: 'VALID' },
  { from: keyed, on: ['accepted'], when: 'in grace', to: 'GRACE_PERIOD' },
  { from: keyed, on: ['accepted'], when: 'grace over', to: 'EXPIRED' },
  { from: keyed, on: ['revoked'], to: 'REVOKED' },
  { from: ['PENDING', 'VALID', 'GRACE_PERIOD', 'EXPIRED', 'INVALID'], on: ['refused'], to: 'INVALID' },
  { from: ['REVOKED'], on: ['refused', 'failed', 'time passed'], to: 'same' },
  { from: ['INVALID'], on: ['failed', 'time passed'], to: 'same' },
  { from: ['PENDING'], on: ['time passed'], to: 'same' },
  { from: ['PENDING', ...standing], on: ['failed'], when: 'ended', to: 'EXPIRED' },
  { from: ['PENDING', ...standing], on: ['failed'], when: 'covered', to: 'VALID' },
  { from: ['PENDING', ...standing], on: ['failed'], when: 'in grace', to: 'GRACE_PERIOD' },
  { from: ['PENDING', ...standing], on: ['failed'], when: 'grace over', to: 'EXPIRED' },
  { from: standing, on: ['time passed'], when: 'ended', to: 'EXPIRED' },
  { from: standing, on: ['time passed'], when: 'covered', to: 'VALID' },
  { from: standing, on: ['time passed'], when: 'in grace', to: 'GRACE_PERIOD' },
  { from: standing, on: ['time passed'], when: 'grace over', to: 'EXPIRED' },
]

/** The row for a status, an event and a condition; there is exactly one. */
export function transitionFor(
  from: LicenseStatus,
  on: LicenseEvent,
  condition: LicenseCondition,
): LicenseTransition | undefined {
  return licenseTransitions.find(
    (row) => row.from.includes(from) && row.on.includes(on) && (row.when === undefined || row.when === condition),
  )
}

export function nextStatus(from: LicenseStatus, on: LicenseEvent, facts: LicenseFacts): LicenseStatus {
  const to = transitionFor(from, on, conditionOf(facts))?.to ?? 'same'
  return to === 'same' ? from : to
}

/** Readiness goes DOWN for these alone; a restart of the process would not mend them, so liveness stays UP. */
export const blockingStatuses: readonly LicenseStatus[] = ['EXPIRED', 'REVOKED', 'INVALID']
