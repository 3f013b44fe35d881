import { durationBounds } from '../base/histograms.ts'
import { aroundRows } from './rows-around.ts'
import { counterRows } from './rows-counters.ts'
import { engineRows } from './rows-engine.ts'
import { haRows } from './rows-ha.ts'
import { progressRows } from './rows-progress.ts'
import { timingRows } from './rows-timings.ts'
import { whyRows } from './rows-why.ts'
import type { HistogramRow, MetricRow } from './table-types.ts'

/** Every metric that is read at scrape time. The reference page `docs/metrics.md` is made from it. */
export const metricTable: readonly MetricRow[] = [
  ...engineRows,
  ...progressRows,
  ...counterRows,
  ...aroundRows,
  ...haRows,
  ...whyRows,
]

/** Distributions, read at scrape time as well. */
export const histogramTable: readonly HistogramRow[] = timingRows

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
    buckets: durationBounds,
  },
} as const
