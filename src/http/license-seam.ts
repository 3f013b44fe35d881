/** What the HTTP interface knows of licensing: the state as it is shown, and whether it counts against readiness. */
import type { LicenseReadiness, LicenseState } from '../license/view.ts'

export { type LicenseStatus, licenseStatuses } from '../license/status.ts'
export type { LicenseState } from '../license/view.ts'

export interface LicenseSource {
  state(): LicenseState
  /** Cached: never asks a server. */
  readiness(): LicenseReadiness
}

/** A process without a license key: everything works. */
export function noKeyLicense(): LicenseSource {
  const state: LicenseState = {
    status: 'NO_KEY',
    licenseId: null,
    tier: null,
    customerName: null,
    expiresAt: null,
    daysRemaining: 0,
    machinesUsed: 0,
    machinesAllowed: 0,
    lastValidatedAt: null,
    cachedJwtExpiresAt: null,
    heartbeatLastSuccessAt: null,
    consecutiveFailures: 0,
    graceRemainingSeconds: 0,
    modeOnline: false,
  }
  return { state: () => state, readiness: () => ({ up: true, details: { status: 'NO_KEY' } }) }
}
