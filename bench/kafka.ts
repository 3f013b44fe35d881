/**
 * `npm run bench:kafka [-- WORKLOAD …] [-- --runs N --records N --store memory|rocksdb --peer COMMAND]`: the workloads
 * against the Kafka at `$BOOTSTRAP` (`npm run kafka` starts one), every run in a process of its own. The input is
 * generated where a topic is missing. `--peer` names another engine's command that takes the same words; the two are
 * then run in turn (A B A B …), so that both meet the same machine.
 */
import { execFileSync } from 'node:child_process'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { connectBroker } from '../src/broker/connect.ts'
import { produceEvents, produceUsers } from './support/events.ts'
import { median } from './support/usage.ts'

interface Line {
  readonly peer: string
  readonly recordsPerSecond: number
  readonly cpuSeconds: number
  readonly brokerCpuSeconds?: number
  readonly rssMiB: number
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '3' },
    records: { type: 'string', default: '2000000' },
    store: { type: 'string', default: 'memory' },
    peer: { type: 'string' },
  },
})
const workloads = positionals.length > 0 ? positionals : ['map', 'count', 'rekey-count', 'window', 'join', 'slow-io']
const bootstrap = process.env.BOOTSTRAP ?? '127.0.0.1:9092'
const partitions = 4
const users = 100_000

async function fillTopics(): Promise<void> {
  const options = { bootstrapServers: [bootstrap], clientId: 'millrace-bench' }
  const broker = await connectBroker({ kind: 'kafka', options })
  const there = new Set((await broker.topics(null)).map(({ topic }) => topic))
  const size = { records: Number(values.records), users, pages: 2000, seed: 7 }
  if (!there.has('ev')) await produceEvents(broker, 'ev', partitions, size)
  if (!there.has('users')) await produceUsers(broker, 'users', partitions, users)
  if (!there.has('ev-io')) await produceEvents(broker, 'ev-io', partitions, { ...size, records: 20_000, users: 1000 })
  await broker.close()
}

function run(command: string, workload: string): Line {
  const env = { ...process.env, BOOTSTRAP: bootstrap }
  const args = [workload, '--store', values.store]
  const out = execFileSync(command, args, { encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'inherit'] })
  return JSON.parse(out.trim().split('\n').at(-1) ?? '') as Line
}

function show(workload: string, lines: readonly Line[]): void {
  const of = (pick: (line: Line) => number): number => median(lines.map(pick))
  const perSecond = Math.round(of((l) => l.recordsPerSecond)).toLocaleString('en')
  process.stdout.write(
    `${workload.padEnd(12)} ${(lines[0]?.peer ?? '').padEnd(14)} ${perSecond.padStart(9)} records/s  ` +
      `${of((l) => l.cpuSeconds).toFixed(2)} CPU s  broker ${of((l) => l.brokerCpuSeconds ?? 0).toFixed(2)} s  ` +
      `${of((l) => l.rssMiB)} MiB  load ${(loadavg()[0] ?? 0).toFixed(1)}\n`,
  )
}

await fillTopics()
for (const workload of workloads) {
  const mine: Line[] = []
  const theirs: Line[] = []
  for (let i = 0; i < Number(values.runs); i++) {
    mine.push(run(join(import.meta.dirname, 'engine'), workload))
    if (values.peer !== undefined) theirs.push(run(values.peer, workload))
  }
  show(workload, mine)
  if (theirs.length === 0) continue
  show(workload, theirs)
  const ratio = median(mine.map((l) => l.recordsPerSecond)) / median(theirs.map((l) => l.recordsPerSecond))
  process.stdout.write(`${workload.padEnd(12)} ratio ${ratio.toFixed(2)}\n`)
}
