import { flag, type LicenseFigures, type MetricRow, single } from './table-types.ts'

const statuses = ['PENDING', 'VALID', 'GRACE_PERIOD', 'EXPIRED', 'REVOKED', 'INVALID', 'NO_KEY']
const epochSeconds = (timestamp: string | null): number => {
  const ms = timestamp === null ? Number.NaN : Date.parse(timestamp)
  return Number.isNaN(ms) ? 0 : ms / 1000
}

const licenseGauge = (name: string, help: string, value: (license: LicenseFigures) => number): MetricRow => ({
  name,
  type: 'gauge',
  labels: [],
  help,
  source: 'license',
  samples: ({ license }) => single(value(license)),
})
/** License. */
export const aroundRows: readonly MetricRow[] = [
  {
    name: 'engine_license_status',
    type: 'gauge',
    labels: ['status'],
    help: 'License status: exactly one is 1.',
    source: 'license',
    samples: ({ license }) =>
      statuses.map((status) => ({ labels: { status }, value: flag(license.status === status) })),
  },
  licenseGauge('engine_license_expires_timestamp_seconds', 'When the license expires; 0 without one.', (license) =>
    epochSeconds(license.expiresAt),
  ),
  licenseGauge(
    'engine_license_grace_remaining_seconds',
    'What is left of the grace period.',
    (license) => license.graceRemainingSeconds,
  ),
  licenseGauge('engine_license_machines_used', 'Machines in use.', (license) => license.machinesUsed),
  licenseGauge('engine_license_machines_allowed', 'Machines allowed.', (license) => license.machinesAllowed),
  licenseGauge('engine_license_online', 'Whether a license server is asked.', (license) => flag(license.modeOnline)),
  licenseGauge(
    'engine_license_consecutive_failures',
    'Validations failed in a row.',
    (license) => license.consecutiveFailures,
  ),
  licenseGauge(
    'engine_license_last_validated_timestamp_seconds',
    'When the license was last validated; 0 before the first time.',
    (license) => epochSeconds(license.lastValidatedAt),
  ),
  licenseGauge(
    'engine_license_heartbeat_last_success_timestamp_seconds',
    'When the license server last answered; 0 before the first time.',
    (license) => epochSeconds(license.heartbeatLastSuccessAt),
  ),
]
