import { flag, type HaFigures, type LicenseFigures, type MetricRow, single } from './table-types.ts'

const statuses = ['PENDING', 'VALID', 'GRACE_PERIOD', 'EXPIRED', 'REVOKED', 'INVALID', 'NO_KEY']
const roles = ['ACTIVE', 'STANDBY', 'UNKNOWN']
const haStates = [
  'JOINING',
  'BOOTSTRAPPING',
  'CATCHING_UP',
  'READY_STANDBY',
  'PROMOTING',
  'ACTIVE',
  'DEMOTING',
  'ISOLATED',
  'FAILED',
  'STOPPING',
  'UNKNOWN',
]

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
const haGauge = (name: string, help: string, value: (ha: HaFigures) => number): MetricRow => ({
  name,
  type: 'gauge',
  labels: [],
  help,
  source: 'high availability',
  samples: ({ ha }) => (ha === null ? [] : single(value(ha))),
})
const oneOf = (
  name: string,
  label: string,
  help: string,
  known: readonly string[],
  value: (ha: HaFigures) => string,
): MetricRow => ({
  name,
  type: 'gauge',
  labels: [label],
  help,
  source: 'high availability',
  samples: ({ ha }) => {
    if (ha === null) return []
    const current = known.includes(value(ha)) ? value(ha) : 'UNKNOWN'
    return known.map((each) => ({ labels: { [label]: each }, value: flag(each === current) }))
  },
})

/** License and high availability. The latter only where `ha.mode` is not `off`. */
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
  haGauge('engine_ha_restarting', 'Whether this pod restarts its engine in place.', (ha) => flag(ha.selfRestarting)),
  oneOf('engine_ha_role', 'role', 'Role of this pod: 1 for the current one.', roles, (ha) => ha.selfRole),
  oneOf('engine_ha_state', 'state', 'State of this pod: 1 for the current one.', haStates, (ha) => ha.selfState),
  haGauge('engine_ha_replication_lag_records', 'Changelog records behind.', (ha) => ha.replicationLagRecords),
  haGauge('engine_ha_replication_lag_seconds', 'Time behind the changelogs.', (ha) => ha.replicationLagMs / 1000),
  haGauge(
    'engine_ha_tail_freshness_seconds',
    "Age of this pod's view of the coordinator.",
    (ha) => ha.tailFreshnessMs / 1000,
  ),
  haGauge('engine_ha_tail_caught_up', 'Whether the coordinator is read to its end.', (ha) => flag(ha.tailCaughtUp)),
  haGauge('engine_ha_ready_standbys', 'Pods that are READY_STANDBY.', (ha) => ha.readyStandbyCount),
  haGauge('engine_ha_desired_standbys', 'Standbys wished for.', (ha) => ha.desiredStandbys),
  haGauge('engine_ha_redundancy_below_desired', 'Whether fewer standbys are ready than wished for.', (ha) =>
    flag(ha.redundancyBelowDesired),
  ),
  haGauge('engine_ha_token_epoch', 'Epoch of the promotion token.', (ha) => ha.tokenEpoch),
  haGauge('engine_ha_restart_required', 'Whether this pod must be restarted.', (ha) =>
    flag(ha.restartRequired !== null),
  ),
]
