/**
 * `npm run bench [-- WORKLOAD …] [-- --records N --runs N --lanes N --store memory|lmdb --format json|avro|protobuf --emit each|commit]`: records per second and CPU
 * time per record on the embedded broker. Every run is a process of its own; the span goes from the first record
 * processed to everything committed, threads and topics standing already.
 */
import { execFileSync } from 'node:child_process'
import { availableParallelism, cpus } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { median } from './support/usage.ts'

interface Run {
  readonly workload: string
  readonly recordsPerSecond: number
  readonly microsecondsPerRecord: number
  readonly commits: number
  readonly seconds: number
  readonly peakMebibytes: number
  readonly load: number
  readonly threads: Readonly<Record<string, number>>
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    records: { type: 'string', default: '1000000' },
    runs: { type: 'string', default: '3' },
    lanes: { type: 'string', default: '2' },
    store: { type: 'string', default: 'memory' },
    format: { type: 'string', default: 'json' },
    emit: { type: 'string', default: 'each' },
    json: { type: 'boolean', default: false },
  },
})
const workloads = positionals.length > 0 ? positionals : ['map', 'count', 'rekey-count']
const records = Number(values.records)
/** `commit`: tables tell each changed row once per commit. */
const settings = { 'topology.emit': values.emit === 'commit' ? 'per-commit' : 'on-update' }

function run(workload: string): Run {
  const script = join(import.meta.dirname, 'support', 'embedded-run.ts')
  const args = [script, workload, values.records, values.lanes, values.store]
  const line = execFileSync(process.execPath, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, BENCH_FORMAT: values.format, BENCH_SETTINGS: JSON.stringify(settings) },
  })
  if (values.json) process.stdout.write(line)
  return JSON.parse(line) as Run
}

const grouped = (n: number): string => Math.round(n).toLocaleString('en')

function show(workload: string, runs: readonly Run[]): void {
  const of = (pick: (run: Run) => number): number => median(runs.map(pick))
  const threads = [...new Set(runs.flatMap((r) => Object.keys(r.threads)))]
    .map((name) => ({ name, each: (of((r) => r.threads[name] ?? 0) * 1e6) / records }))
    .filter(({ each }) => each >= 0.01)
    .sort((a, b) => b.each - a.each)
    .map(({ name, each }) => `${name} ${each.toFixed(2)}`)
  process.stdout.write(
    `${workload.padEnd(12)} ${grouped(of((r) => r.recordsPerSecond)).padStart(9)} records/s  ` +
      `${of((r) => r.microsecondsPerRecord).toFixed(2)} µs CPU a record  ` +
      `${of((r) => r.peakMebibytes)} MiB  commit every ${of((r) => (r.seconds * 1000) / r.commits).toFixed(0)} ms  ` +
      `load ${of((r) => r.load).toFixed(1)}\n${' '.repeat(12)} µs a record by thread: ${threads.join(', ')}\n`,
  )
}

process.stdout.write(
  `${grouped(records)} records, ${values.lanes} lanes, ${values.store} store, exactly-once; ` +
    `${availableParallelism()} cores (${cpus()[0]?.model ?? 'unknown'}), Node ${process.version}; ` +
    `median of ${values.runs}\n`,
)
for (const workload of workloads)
  show(
    workload,
    Array.from({ length: Number(values.runs) }, () => run(workload)),
  )
