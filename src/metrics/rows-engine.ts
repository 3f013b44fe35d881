import { commitPhases, lifecycleStates } from '../view/view.ts'
import { flag, type MetricRow, single } from './table-types.ts'

const seconds = (ms: number): number => ms / 1000

/** Identity, lifecycle, health, commits. */
export const engineRows: readonly MetricRow[] = [
  {
    name: 'engine_info',
    type: 'gauge',
    labels: ['application_id', 'version', 'node_version', 'ha_mode'],
    help: 'Identity of the application and its build; always 1.',
    source: 'state',
    samples: ({ view, version, haMode }) => [
      {
        labels: { application_id: view.applicationId, version, node_version: process.version, ha_mode: haMode },
        value: 1,
      },
    ],
  },
  {
    name: 'engine_state',
    type: 'gauge',
    labels: ['state'],
    help: 'Lifecycle state: 1 for the current one, 0 for all others.',
    source: 'state',
    samples: ({ state }) =>
      lifecycleStates.map((name) => ({ labels: { state: name }, value: flag(state.current === name) })),
  },
  {
    name: 'engine_state_since_timestamp_seconds',
    type: 'gauge',
    labels: [],
    help: 'When the current lifecycle state was entered.',
    source: 'state',
    samples: ({ state }) => single(seconds(state.sinceMs)),
  },
  {
    name: 'engine_state_transitions_total',
    type: 'counter',
    labels: ['from', 'to'],
    help: 'Lifecycle transitions.',
    source: 'state',
    samples: ({ transitions }) => transitions,
  },
  {
    name: 'engine_health',
    type: 'gauge',
    labels: ['probe', 'component'],
    help: 'Health indicators as the probes count them: 1 is UP, 0 is DOWN.',
    source: 'health',
    samples: ({ health }) =>
      (['live', 'ready'] as const).flatMap((probe) =>
        health
          .report(probe)
          .components.map(({ name, status }) => ({ labels: { probe, component: name }, value: flag(status === 'UP') })),
      ),
  },
  {
    name: 'engine_lanes',
    type: 'gauge',
    labels: [],
    help: 'Lanes in force.',
    source: 'state',
    samples: ({ view }) => single(view.lanes),
  },
  {
    name: 'engine_lanes_alive',
    type: 'gauge',
    labels: [],
    help: 'Lanes whose thread is there.',
    source: 'state',
    samples: ({ view }) => single(view.lanesAlive),
  },
  {
    name: 'engine_thread_silence_seconds',
    type: 'gauge',
    labels: [],
    help: 'Time since the engine thread gave its last sign of life.',
    source: 'state',
    samples: ({ view }) => single(seconds(view.engineSilenceMs())),
  },
  {
    name: 'engine_broker_connected',
    type: 'gauge',
    labels: [],
    help: 'Whether the last exchange with the broker went well.',
    source: 'snapshot',
    samples: ({ view }) => single(flag(view.broker().connected)),
  },
  {
    name: 'engine_restart_budget_used',
    type: 'gauge',
    labels: [],
    help: 'In-place restarts that count against commit-barrier.max-engine-restarts at the moment.',
    source: 'snapshot',
    samples: ({ barriers }) => (barriers === null ? [] : single(barriers.restarts.used)),
  },
  {
    name: 'engine_restart_budget_max',
    type: 'gauge',
    labels: [],
    help: 'In-place restarts allowed within their window.',
    source: 'snapshot',
    samples: ({ barriers }) => (barriers === null ? [] : single(barriers.restarts.max)),
  },
  {
    name: 'engine_commit_phase',
    type: 'gauge',
    labels: ['phase'],
    help: 'Phase of the commit pipeline: 1 for the current one, 0 for all others.',
    source: 'snapshot',
    samples: ({ barriers }) =>
      barriers === null
        ? []
        : commitPhases.map((phase) => ({ labels: { phase }, value: flag(barriers.phase === phase) })),
  },
  {
    name: 'engine_commit_in_flight_seconds',
    type: 'gauge',
    labels: [],
    help: 'Age of the commit under way, 0 when there is none.',
    source: 'snapshot',
    samples: ({ barriers, nowMs }) => {
      if (barriers === null) return []
      const since = barriers.phase === 'IDLE' ? null : barriers.startedAtMs
      return single(since === null ? 0 : Math.max(0, seconds(nowMs - since)))
    },
  },
  {
    name: 'engine_commit_outstanding_lanes',
    type: 'gauge',
    labels: [],
    help: 'Lanes that the commit under way waits for.',
    source: 'snapshot',
    samples: ({ barriers }) => (barriers === null ? [] : single(barriers.outstandingLanes.length)),
  },
  {
    name: 'engine_commit_epoch',
    type: 'gauge',
    labels: [],
    help: 'Number of the current commit epoch.',
    source: 'snapshot',
    samples: ({ barriers }) => (barriers === null ? [] : single(barriers.epoch)),
  },
  {
    name: 'engine_transaction_open_bytes',
    type: 'gauge',
    labels: [],
    help: 'Bytes written in the open transaction.',
    source: 'snapshot',
    samples: ({ barriers }) => (barriers === null ? [] : single(barriers.transaction?.bytes ?? 0)),
  },
  {
    name: 'engine_last_commit_timestamp_seconds',
    type: 'gauge',
    labels: [],
    help: 'When the last commit ended; absent before the first.',
    source: 'snapshot',
    samples: ({ consumer }) => {
      const at = consumer?.lastCommitMs ?? null
      return at === null ? [] : single(seconds(at))
    },
  },
]
