export type { Metrics, MetricsOptions } from './metrics.ts'
export { createMetrics } from './metrics.ts'
export { metricTable, observedTable } from './table.ts'
