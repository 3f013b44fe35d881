/** The metrics of `/metrics` under the same names, for a meter of OpenTelemetry. */
import type { Observable } from '@opentelemetry/api'
import type { OtelApi } from '../lanes/telemetry/api.ts'
import type { Moment } from './table-types.ts'
import { histogramTable, metricTable } from './table.ts'

/**
 * Tells a meter of all of them when it asks. It knows no distributions that somebody else has counted: of those it gets sum
 * and count, as counters. Returns how to end it.
 */
export function bridgeMetrics({ metrics }: OtelApi, moment: () => Moment): () => void {
  const meter = metrics.getMeter('millrace')
  const rows = metricTable.map((row) => {
    const options = { description: row.help }
    const name = row.name
    const made: Observable =
      row.type === 'counter' ? meter.createObservableCounter(name, options) : meter.createObservableGauge(name, options)
    return { row, made }
  })
  const distributions = histogramTable.map((row) => ({
    row,
    sum: meter.createObservableCounter(`${row.name}_sum`, { description: row.help }),
    count: meter.createObservableCounter(`${row.name}_count`, { description: row.help }),
  }))
  const all: Observable[] = [
    ...rows.map(({ made }) => made),
    ...distributions.flatMap(({ sum, count }) => [sum, count]),
  ]
  const tell: Parameters<typeof meter.addBatchObservableCallback>[0] = (result) => {
    const now = moment()
    for (const { row, made } of rows)
      for (const { labels, value } of row.samples(now)) if (Number.isFinite(value)) result.observe(made, value, labels)
    if (now.counters === null) return
    for (const { row, sum, count } of distributions) {
      for (const { labels, value } of row.samples(now.counters, now.topology)) {
        result.observe(sum, value.sum, labels)
        result.observe(count, value.cumulative.at(-1) ?? 0, labels)
      }
    }
  }
  meter.addBatchObservableCallback(tell, all)
  return () => meter.removeBatchObservableCallback(tell, all)
}
