/** High availability: `engine.ha.*`. Only where `ha.mode` is not `off`. */
import type { HaMetrics } from '../ha/contract.ts'
import { roles, states } from '../ha/log/records.ts'
import { flag, type HaFigures, type MetricRow, single } from './table-types.ts'

const haRoles = [...roles, 'UNKNOWN']
const haStates = [...states, 'UNKNOWN']

const source = 'high availability'

const gauge = (name: string, help: string, value: (ha: HaFigures) => number): MetricRow => ({
  name,
  type: 'gauge',
  labels: [],
  help,
  source,
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
  source,
  samples: ({ ha }) => {
    if (ha === null) return []
    const current = known.includes(value(ha)) ? value(ha) : 'UNKNOWN'
    return known.map((each) => ({ labels: { [label]: each }, value: flag(each === current) }))
  },
})
const counter = (name: string, help: string, value: (counts: HaMetrics) => number): MetricRow => ({
  name,
  type: 'counter',
  labels: [],
  help,
  source,
  samples: ({ haCounts }) => (haCounts === null ? [] : single(value(haCounts))),
})
const counterBy = (
  name: string,
  label: string,
  help: string,
  values: (counts: HaMetrics) => Readonly<Record<string, number>>,
): MetricRow => ({
  name,
  type: 'counter',
  labels: [label],
  help,
  source,
  samples: ({ haCounts }) =>
    haCounts === null
      ? []
      : Object.entries(values(haCounts)).map(([each, value]) => ({ labels: { [label]: each }, value })),
})

const restarting: MetricRow = {
  name: 'engine_ha_restarting',
  type: 'gauge',
  labels: [],
  help: 'Whether this pod restarts its engine in place.',
  source,
  // Alerts rest on it, so it is there as soon as the mode is, before anything is known of the group.
  samples: ({ ha, haMode }) => (ha === null && haMode === 'off' ? [] : single(flag(ha?.selfRestarting ?? false))),
}

export const haRows: readonly MetricRow[] = [
  restarting,
  oneOf('engine_ha_role', 'role', 'Role of this pod: 1 for the current one.', haRoles, (ha) => ha.selfRole),
  oneOf('engine_ha_state', 'state', 'State of this pod: 1 for the current one.', haStates, (ha) => ha.selfState),
  gauge('engine_ha_replication_lag_records', 'Changelog records behind.', (ha) => ha.replicationLagRecords),
  gauge('engine_ha_replication_lag_seconds', 'Time behind the changelogs.', (ha) => ha.replicationLagMs / 1000),
  gauge(
    'engine_ha_tail_freshness_seconds',
    "Age of this pod's view of the coordinator.",
    (ha) => ha.tailFreshnessMs / 1000,
  ),
  gauge('engine_ha_tail_caught_up', 'Whether the coordinator is read to its end.', (ha) => flag(ha.tailCaughtUp)),
  gauge('engine_ha_ready_standbys', 'Pods that are READY_STANDBY.', (ha) => ha.readyStandbyCount),
  gauge('engine_ha_desired_standbys', 'Standbys wished for.', (ha) => ha.desiredStandbys),
  gauge('engine_ha_redundancy_below_desired', 'Whether fewer standbys are ready than wished for.', (ha) =>
    flag(ha.redundancyBelowDesired),
  ),
  gauge('engine_ha_token_epoch', 'Epoch of the promotion token.', (ha) => ha.tokenEpoch),
  gauge('engine_ha_failover_paused', 'Whether an operator paused failover: nobody takes over by itself.', (ha) =>
    flag(ha.failoverPaused),
  ),
  gauge('engine_ha_failover_priority', 'Failover priority in force for this pod.', (ha) => ha.selfFailoverPriority),
  gauge('engine_ha_restart_required', 'Whether this pod must be restarted.', (ha) => flag(ha.restartRequired !== null)),
  counterBy(
    'engine_ha_promotions_total',
    'reason',
    'Promotions of this pod that ended as ACTIVE.',
    (counts) => counts.promotions,
  ),
  {
    name: 'engine_ha_last_promotion_seconds',
    type: 'gauge',
    labels: [],
    help: "Duration of this pod's last promotion, from its claim to ACTIVE; absent before the first.",
    source,
    samples: ({ haCounts }) => {
      const ms = haCounts?.lastPromotionMs ?? null
      return ms === null ? [] : single(ms / 1000)
    },
  },
  counterBy(
    'engine_ha_commands_total',
    'outcome',
    'Commands that this pod, as acting pod, carried out, refused, or found too old.',
    (counts) => counts.commandResults,
  ),
  counter(
    'engine_ha_hand_overs_total',
    'Times this pod handed the token over in good order.',
    (each) => each.handOvers,
  ),
  counter(
    'engine_ha_rollbacks_total',
    'Hand-overs that nobody took up, so that this pod went on.',
    (each) => each.rollbacks,
  ),
  counter(
    'engine_ha_step_downs_total',
    'Times this pod gave way to a newer holder of the token.',
    (each) => each.stepDowns,
  ),
  counter(
    'engine_ha_isolations_total',
    'Times this pod stopped dispatching because its heartbeats were not acknowledged.',
    (each) => each.isolations,
  ),
  counter(
    'engine_ha_bad_records_total',
    'Records of the coordinator topic that could not be read, or whose signature was wrong.',
    (each) => each.badRecords,
  ),
  counter('engine_ha_heartbeats_total', 'Heartbeats sent.', (each) => each.heartbeatsSent),
  {
    name: 'engine_ha_heartbeat_age_seconds',
    type: 'gauge',
    labels: [],
    help: 'Age of the newest own heartbeat that came back through the coordinator topic.',
    source,
    samples: ({ haCounts }) => (haCounts === null ? [] : single(haCounts.heartbeatAckAgeMs / 1000)),
  },
]
