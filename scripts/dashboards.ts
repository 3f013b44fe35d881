/**
 * Writes the Grafana dashboards below `deploy/monitoring/grafana/dashboards` from the tables here:
 * `node scripts/dashboards.ts`. A test holds the files against the tables, and every expression against the metrics.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Panel {
  readonly title: string
  readonly about: string
  readonly unit: string
  /** Expression and legend. */
  readonly lines: ReadonlyArray<readonly [expression: string, legend: string]>
}

export interface Dashboard {
  readonly file: string
  readonly title: string
  readonly panels: readonly Panel[]
}

const at = '{instance=~"$instance"}'
const with_ = (labels: string): string => `{instance=~"$instance",${labels}}`
const rate = (metric: string, labels = ''): string =>
  `rate(${metric}${labels === '' ? at : with_(labels)}[$__rate_interval])`
const quantile = (q: number, metric: string, by: string): string =>
  `histogram_quantile(${q}, sum by (le, ${by}) (${rate(`${metric}_bucket`)}))`

const application: Dashboard = {
  file: 'application.json',
  title: 'Millrace: application',
  panels: [
    panel('State', 'The lifecycle state each pod is in.', 'short', [
      [`engine_state${at} == 1`, '{{instance}} {{state}}'],
    ]),
    panel('Held up by', 'Findings of /why, and for how long there have been any.', 's', [
      [`engine_standstill_seconds${at} > 0`, '{{instance}} {{code}}'],
    ]),
    panel('Records in', 'Records dispatched to lanes.', 'ops', [
      [`sum by (instance) (${rate('engine_records_dispatched_total')})`, '{{instance}}'],
    ]),
    panel('Records out', 'Records written, by topic.', 'ops', [
      [`sum by (topic) (${rate('engine_sink_records_total')})`, '{{topic}}'],
    ]),
    panel('Lag', 'Records behind the ends of the sources.', 'short', [[`engine_lag_records${at}`, '{{instance}}']]),
    panel('Watermark delay', 'How far event time is behind the clock.', 's', [
      [`engine_watermark_delay_seconds${at}`, '{{instance}}'],
    ]),
    panel('Age of records at the sink', 'From their event time to the broker.', 's', [
      [
        `histogram_quantile(0.5, sum by (le) (${rate('engine_record_e2e_latency_seconds_bucket', 'kind="sink"')}))`,
        'median',
      ],
      [
        `histogram_quantile(0.99, sum by (le) (${rate('engine_record_e2e_latency_seconds_bucket', 'kind="sink"')}))`,
        '99 of 100',
      ],
    ]),
    panel('Commits', 'Committed and aborted.', 'ops', [
      [`sum by (outcome) (${rate('engine_commits_total')})`, '{{outcome}}'],
    ]),
    panel('Duration of commits', 'From the barrier to the end.', 's', [
      [quantile(0.5, 'engine_commit_duration_seconds', 'instance'), '{{instance}} median'],
      [quantile(0.99, 'engine_commit_duration_seconds', 'instance'), '{{instance}} 99 of 100'],
    ]),
    panel('Left out', 'Records dropped, by reason.', 'ops', [
      [`sum by (reason) (${rate('engine_records_dropped_total')})`, '{{reason}}'],
    ]),
    panel('Restarts in place', 'By the code of their cause.', 'short', [
      [`sum by (cause) (increase(engine_restarts_total${at}[$__rate_interval]))`, '{{cause}}'],
    ]),
    // A standby has the same rows as the active pod: a sum over pods would count each of them again.
    panel('Rows of stores', 'About how many there are in each pod.', 'short', [
      [`engine_store_entries${at}`, '{{instance}} {{store}}'],
    ]),
  ],
}

const lanes: Dashboard = {
  file: 'lanes-and-flow.json',
  title: 'Millrace: lanes and flow',
  panels: [
    panel('Busy', 'Part of the time that each lane spends processing.', 'percentunit', [
      [rate('engine_lane_busy_seconds_total'), '{{instance}} {{lane}}'],
    ]),
    panel('Held back', 'Part of the time that each lane waits for room further down.', 'percentunit', [
      [rate('engine_lane_backpressured_seconds_total'), '{{instance}} {{lane}}'],
    ]),
    panel('Processor', 'Of lanes and the engine thread.', 'percentunit', [
      [rate('engine_lane_cpu_seconds_total'), '{{instance}} {{lane}}'],
      [rate('engine_thread_cpu_seconds_total'), '{{instance}} engine'],
    ]),
    panel('Waiting for the lane', 'Records in its queue.', 'short', [
      [`engine_lane_queue_records${at}`, '{{instance}} {{lane}}'],
    ]),
    panel('Records by lane', 'A lane that has most of them has a hot key.', 'ops', [
      [rate('engine_lane_records_received_total'), '{{instance}} {{lane}}'],
    ]),
    panel('Handed to other lanes', 'Records with a new key.', 'ops', [
      [rate('engine_lane_handed_off_records_total'), '{{instance}} {{lane}}'],
    ]),
    panel('Time per record', 'By sub-topology, 99 of 100.', 's', [
      [quantile(0.99, 'engine_process_duration_seconds', 'subtopology'), '{{subtopology}}'],
    ]),
    panel('Slowest call of late', 'Of a function of the application.', 's', [
      [`engine_lane_slowest_call_seconds${at}`, '{{instance}} {{lane}}'],
    ]),
    panel('Fetched and not dispatched', 'Bytes, and how many there may be.', 'bytes', [
      [`engine_source_buffered_bytes${at}`, '{{instance}}'],
      [`engine_source_buffered_limit_bytes${at}`, '{{instance}} limit'],
    ]),
    panel('Lag by partition', 'End of the log minus the committed offset.', 'short', [
      [`engine_source_lag_records${at}`, '{{topic}} {{partition}}'],
    ]),
    panel('Idle partitions', 'They do not hold back the watermark.', 'short', [
      [`engine_partition_idle${at} == 1`, '{{topic}} {{partition}}'],
    ]),
    panel('Heap', 'Of lanes and the engine thread.', 'bytes', [
      [`engine_lane_heap_used_bytes${at}`, '{{instance}} {{lane}}'],
      [`engine_thread_heap_used_bytes${at}`, '{{instance}} engine'],
    ]),
    panel('Operations on stores', 'Reads and writes.', 'ops', [
      [`sum by (store, op) (${rate('engine_store_operations_total')})`, '{{store}} {{op}}'],
    ]),
    panel('Timers', 'Fired.', 'ops', [[`sum by (type) (${rate('engine_timers_fired_total')})`, '{{type}}']]),
  ],
}

const availability: Dashboard = {
  file: 'high-availability.json',
  title: 'Millrace: high availability',
  panels: [
    panel('Who is what', 'The state each pod is in.', 'short', [
      [`engine_ha_state${at} == 1`, '{{instance}} {{state}}'],
    ]),
    panel('Ready standbys', 'And how many are wished for.', 'short', [
      [`max(engine_ha_ready_standbys${at})`, 'ready'],
      [`max(engine_ha_desired_standbys${at})`, 'desired'],
    ]),
    panel('Behind the changelogs', 'Records that a takeover would have to read.', 'short', [
      [`engine_ha_replication_lag_records${at}`, '{{instance}}'],
    ]),
    panel('Age of the own heartbeat', 'The newest that came back through the topic.', 's', [
      [`engine_ha_heartbeat_age_seconds${at}`, '{{instance}}'],
    ]),
    panel('Age of the view', 'How fresh each pod’s knowledge of the others is.', 's', [
      [`engine_ha_tail_freshness_seconds${at}`, '{{instance}}'],
    ]),
    panel('Token', 'Its epoch: each step is a move of the role.', 'short', [
      [`max(engine_ha_token_epoch${at})`, 'epoch'],
    ]),
    panel('Promotions', 'By reason.', 'short', [
      [`sum by (reason) (increase(engine_ha_promotions_total${at}[$__rate_interval]))`, '{{reason}}'],
    ]),
    panel('Duration of the last promotion', 'From the claim to ACTIVE.', 's', [
      [`engine_ha_last_promotion_seconds${at}`, '{{instance}}'],
    ]),
  ],
}

export const dashboards: readonly Dashboard[] = [application, lanes, availability]

function panel(title: string, about: string, unit: string, lines: Panel['lines']): Panel {
  return { title, about, unit, lines }
}

/** The file's text as Grafana imports it. */
export function rendered(dashboard: Dashboard): string {
  // Grafana puts the chosen source in.
  const datasource = { type: 'prometheus', uid: '$' + '{datasource}' }
  const panels = dashboard.panels.map(({ title, about, unit, lines }, i) => ({
    id: i + 1,
    type: 'timeseries',
    title,
    description: about,
    datasource,
    gridPos: { h: 8, w: 12, x: 12 * (i % 2), y: 8 * Math.floor(i / 2) },
    fieldConfig: { defaults: { unit }, overrides: [] },
    targets: lines.map(([expr, legendFormat], n) => ({ refId: 'ABCD'[n], datasource, expr, legendFormat })),
  }))
  const variables = [
    { name: 'datasource', type: 'datasource', query: 'prometheus' },
    {
      name: 'instance',
      type: 'query',
      datasource,
      query: 'label_values(engine_info, instance)',
      refresh: 2,
      multi: true,
      includeAll: true,
      allValue: '.*',
      current: { text: 'All', value: '$__all' },
    },
  ]
  const whole = {
    uid: dashboard.file.replace('.json', '').replace(/^/, 'millrace-'),
    title: dashboard.title,
    tags: ['millrace'],
    schemaVersion: 39,
    refresh: '15s',
    time: { from: 'now-1h', to: 'now' },
    templating: { list: variables },
    panels,
  }
  return `${JSON.stringify(whole, undefined, 2)}\n`
}

if (import.meta.main) {
  const folder = join(import.meta.dirname, '..', 'deploy', 'monitoring', 'grafana', 'dashboards')
  mkdirSync(folder, { recursive: true })
  for (const dashboard of dashboards) writeFileSync(join(folder, dashboard.file), rendered(dashboard))
}
