import { blockingStatuses, type LicenseStatus } from './status.ts'

/** The license as `/license` shows it, and the only place where customer and license id appear. */
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

/** What the readiness probe says of the license; nothing in it tells whose license it is. */
export interface LicenseReadiness {
  readonly up: boolean
  readonly details: Readonly<Record<string, unknown>>
  /** Why it is DOWN, in one sentence. */
  readonly reason?: string
}

/** All that is known at one moment, from which every view is made. */
export interface LicenseSnapshot {
  readonly status: LicenseStatus
  readonly reason: string
  readonly nowMs: number
  readonly licenseId: string | null
  readonly tier: string | null
  readonly customerName: string | null
  readonly expiresAtMs: number | null
  readonly machinesUsed: number
  readonly machinesAllowed: number
  readonly lastValidatedAtMs: number | null
  readonly cachedJwtExpiresAtMs: number | null
  readonly heartbeatLastSuccessAtMs: number | null
  readonly consecutiveFailures: number
  readonly graceEndsAtMs: number
  readonly online: boolean
}

export const dayMs = 86_400_000
const epochZero = new Date(0).toISOString()

const iso = (atMs: number | null): string | null => (atMs === null ? null : new Date(atMs).toISOString())

export function daysRemaining(snapshot: LicenseSnapshot): number {
  if (snapshot.expiresAtMs === null) return 0
  return Math.max(0, Math.floor((snapshot.expiresAtMs - snapshot.nowMs) / dayMs))
}

function graceRemainingSeconds(snapshot: LicenseSnapshot): number {
  if (snapshot.status !== 'GRACE_PERIOD') return 0
  return Math.max(0, Math.ceil((snapshot.graceEndsAtMs - snapshot.nowMs) / 1000))
}

/** The fourteen fields, JSON-ready. */
export function stateOf(snapshot: LicenseSnapshot): LicenseState {
  if (snapshot.status === 'NO_KEY') return { status: 'NO_KEY', ...noLicense, modeOnline: false }
  if (snapshot.status === 'PENDING') {
    return {
      status: 'PENDING',
      ...noLicense,
      expiresAt: epochZero,
      lastValidatedAt: epochZero,
      cachedJwtExpiresAt: epochZero,
      heartbeatLastSuccessAt: epochZero,
      modeOnline: snapshot.online,
    }
  }
  return {
    status: snapshot.status,
    licenseId: snapshot.licenseId,
    tier: snapshot.tier,
    customerName: snapshot.customerName,
    expiresAt: iso(snapshot.expiresAtMs),
    daysRemaining: daysRemaining(snapshot),
    machinesUsed: snapshot.machinesUsed,
    machinesAllowed: snapshot.machinesAllowed,
    lastValidatedAt: iso(snapshot.lastValidatedAtMs),
    cachedJwtExpiresAt: iso(snapshot.cachedJwtExpiresAtMs),
    heartbeatLastSuccessAt: iso(snapshot.heartbeatLastSuccessAtMs),
    consecutiveFailures: snapshot.consecutiveFailures,
    graceRemainingSeconds: graceRemainingSeconds(snapshot),
    modeOnline: snapshot.online,
  }
}

/** What a state shows of a license that is not there. */
export const noLicense = {
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
} as const

export function readinessOf(snapshot: LicenseSnapshot): LicenseReadiness {
  const { status } = snapshot
  const up = !blockingStatuses.includes(status)
  const details = {
    status,
    modeOnline: status !== 'NO_KEY' && snapshot.online,
    ...(status === 'GRACE_PERIOD' ? { graceRemainingSeconds: graceRemainingSeconds(snapshot) } : {}),
  }
  return up ? { up, details } : { up, details, reason: `The license is ${status}: ${snapshot.reason}.` }
}
