/** Writes `docs/metrics.md` from the table of metrics: `node scripts/docs-metrics.ts`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { histogramTable, metricTable, observedTable } from '../src/metrics/index.ts'

export const metricsPage = join(import.meta.dirname, '..', 'docs', 'metrics.md')

interface Row {
  readonly name: string
  readonly type: string
  readonly labels: readonly string[]
  readonly help: string
  readonly source: string
}

export function metricRows(): Row[] {
  const observed = Object.entries(observedTable).map(([name, row]) => ({ ...row, name, source: 'observed' }))
  const histograms = histogramTable.map((row) => ({ ...row, type: 'histogram', source: 'shared counters' }))
  return [...metricTable, ...histograms, ...observed].sort((a, b) => (a.name < b.name ? -1 : 1))
}

export function renderMetricsPage(): string {
  const rows = metricRows().map(({ name, type, labels, help, source }) => {
    const shown = labels.length === 0 ? '' : labels.map((label) => `\`${label}\``).join(', ')
    return `| \`${name}\` | ${type} | ${shown} | ${help} | ${source} |`
  })
  return [
    '# Metrics',
    '',
    '<!-- Generated from src/metrics/table.ts by scripts/docs-metrics.ts; do not edit. -->',
    '',
    '`/metrics` answers in the Prometheus text format 0.0.4, families sorted by name, made at most once a second.',
    '`runtime.metrics.enabled: false` turns it off. Beside the metrics below come `process_*` and `nodejs_*` under the names that',
    'stock Node.js dashboards chart, and those of registries that the application appends.',
    '',
    'No label carries keys, values, addresses or customer data. Series per partition end at 2,000 partitions, series per node at',
    '500 nodes; totals stay whole. Lanes and the engine thread count in shared memory, so that a stuck lane still shows its last',
    'figures; a restart in place may begin such a counter anew. A metric whose value is not known yet is absent, never a guess.',
    'Those of high availability are there only where `ha.mode` is not `off`.',
    '',
    '| Name | Type | Labels | Meaning | From |',
    '|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}

if (import.meta.main) writeFileSync(metricsPage, renderMetricsPage())
