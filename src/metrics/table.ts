import { aroundRows } from './rows-around.ts'
import { counterRows } from './rows-counters.ts'
import { engineRows } from './rows-engine.ts'
import { haRows } from './rows-ha.ts'
import { progressRows } from './rows-progress.ts'
import type { MetricRow } from './table-types.ts'

/** Every metric that is read at scrape time. The reference page `docs/metrics.md` is made from it. */
export const metricTable: readonly MetricRow[] = [
  ...engineRows,
  ...progressRows,
  ...counterRows,
  ...aroundRows,
  ...haRows,
]

const durationBuckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Metrics that are observed as things happen, on the control thread. */
export const observedTable = {
  engine_http_requests_total: {
    type: 'counter',
    labels: ['method', 'route', 'status'],
    help: 'Requests to this interface. Unknown paths and methods are counted as one each.',
    buckets: [],
  },
  engine_http_request_duration_seconds: {
    type: 'histogram',
    labels: ['route'],
    help: 'Time from a request to its answer.',
    buckets: durationBuckets,
  },
  engine_commit_duration_seconds: {
    type: 'histogram',
    labels: [],
    help: 'Duration of a commit from its barrier to its end.',
    buckets: durationBuckets,
  },
  engine_commit_phase_duration_seconds: {
    type: 'histogram',
    labels: ['phase'],
    help: 'Duration of a phase of a commit.',
    buckets: durationBuckets,
  },
} as const
