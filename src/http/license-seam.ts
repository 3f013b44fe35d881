/** What the HTTP interface knows of licensing: the state as it is shown, and whether it counts against readiness. */
import { type LicenseReadiness, type LicenseState, noLicense } from '../license/view.ts'

export { type LicenseStatus, licenseStatuses } from '../license/status.ts'
export type { LicenseState } from '../license/view.ts'

export interface LicenseSource {
  state(): LicenseState
  /** Cached: never asks a server. */
  readiness(): LicenseReadiness
}

/** A process without a license key: everything works. */
export function noKeyLicense(): LicenseSource {
  const state: LicenseState = { status: 'NO_KEY', ...noLicense, modeOnline: false }
  return { state: () => state, readiness: () => ({ up: true, details: { status: 'NO_KEY' } }) }
}
