/**
 * `npm run bench:lanes [-- WORKLOAD …] [-- --lanes 1,2,4,8,16 --records N --runs N --store memory|lmdb]`: what a record costs each kind of thread, by
 * the number of lanes, as rows of a Markdown table. CPU is compared and not rates, so that more lanes than cores tell of a machine that
 * has as many: a thread does at most one core's work, so the engine thread is the limit from as many lanes on as it could feed, and
 * it does at most 1,000,000 records a second for each microsecond that a record costs it.
 */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { median } from './support/usage.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    lanes: { type: 'string', default: '1,2,4,8,16' },
    records: { type: 'string', default: '1000000' },
    runs: { type: 'string', default: '3' },
    store: { type: 'string', default: 'memory' },
  },
})
const workloads = positionals.length > 0 ? positionals : ['map', 'rekey-count']

type Threads = Readonly<Record<string, number>>

/** Microseconds of CPU a record by thread; all lanes together are `lanes`. */
function run(workload: string, lanes: number): Threads {
  const script = join(import.meta.dirname, 'support', 'embedded-run.ts')
  const words = [script, workload, values.records, String(lanes), values.store]
  const out = execFileSync(process.execPath, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  const { threads } = JSON.parse(out) as { readonly threads: Threads }
  const used: Record<string, number> = {}
  for (const [name, seconds] of Object.entries(threads)) {
    const kind = /^lane-\d+$/.test(name) ? 'lanes' : name
    used[kind] = (used[kind] ?? 0) + (seconds * 1e6) / Number(values.records)
  }
  return used
}

const shown = ['engine', 'lanes', 'embedded-broker', 'V8Worker']

/** A range of two at least, so that it is not mistaken for more than it is. */
function row(workload: string, lanes: number): string {
  const runs = Array.from({ length: Number(values.runs) }, () => run(workload, lanes))
  const of = (name: string): number => median(runs.map((used) => used[name] ?? 0))
  const all = median(runs.map((used) => Object.values(used).reduce((sum, each) => sum + each, 0)))
  const engine = of('engine')
  const cells = shown.map((name) => of(name).toFixed(2))
  const fed = of('lanes') / engine
  const most = Math.round(1e6 / engine / 1000)
  return `| \`${workload}\` | ${lanes} | ${cells.join(' | ')} | ${all.toFixed(2)} | ${fed.toFixed(1)} | ${most},000 |`
}

process.stdout.write(`| | lanes | ${shown.join(' | ')} | all | lanes that it feeds | records/s at most |\n`)
process.stdout.write(`|---|--:|${shown.map(() => '--:|').join('')}--:|--:|--:|\n`)
for (const workload of workloads) {
  for (const lanes of values.lanes.split(',')) process.stdout.write(`${row(workload, Number(lanes))}\n`)
}
