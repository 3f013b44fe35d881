export type { Metrics, MetricsOptions } from './metrics.ts'
export { createMetrics } from './metrics.ts'
export { histogramTable, metricTable, observedTable } from './table.ts'
