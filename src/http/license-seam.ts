/** What the HTTP interface knows of licensing: the state as it is shown, and whether it counts against readiness. */
export const licenseStatuses = ['PENDING', 'VALID', 'GRACE_PERIOD', 'EXPIRED', 'REVOKED', 'INVALID', 'NO_KEY'] as const
export type LicenseStatus = (typeof licenseStatuses)[number]

/** Ready for JSON; timestamps are ISO 8601. */
export interface LicenseState {
  readonly status: LicenseStatus
  readonly licenseId: string | null
  readonly tier: string | null
  readonly customerName: string | null
  readonly expiresAt: string | null
  readonly daysRemaining: number
  readonly machinesUsed: number
  readonly machinesAllowed: number
  readonly lastValidatedAt: string | null
  readonly cachedJwtExpiresAt: string | null
  readonly heartbeatLastSuccessAt: string | null
  readonly consecutiveFailures: number
  readonly graceRemainingSeconds: number
  readonly modeOnline: boolean
}

export interface LicenseSource {
  state(): LicenseState
  /** Cached: never asks a server. */
  readiness(): { readonly up: boolean; readonly details: Readonly<Record<string, unknown>>; readonly reason?: string }
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
