/**
 * `node bench/start.ts [--runs N]`: how long a process takes from its beginning to RUNNING, without state: on the embedded
 * broker, and on the Kafka at `$BOOTSTRAP` where that is set. Median of the runs.
 */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { connectBroker } from '../src/broker/connect.ts'
import { median } from './support/usage.ts'

const { values } = parseArgs({ options: { runs: { type: 'string', default: '5' } } })
const bootstrap = process.env.BOOTSTRAP

function run(address: string, id: string): number {
  const script = join(import.meta.dirname, 'support', 'start-run.ts')
  const env = { ...process.env, BENCH_APPLICATION: id, BENCH_IN: 'start-in', BENCH_OUT: 'start-out' }
  return Number(execFileSync(process.execPath, [script, address], { encoding: 'utf8', env }))
}

function show(name: string, milliseconds: readonly number[]): void {
  const all = milliseconds.map((ms) => ms.toFixed(0)).join(', ')
  process.stdout.write(`${name.padEnd(9)} ${median(milliseconds).toFixed(0)} ms to RUNNING (${all})\n`)
}

const rounds = Array.from({ length: Number(values.runs) }, (_, i) => `start-${Date.now().toString(36)}-${i}`)
show(
  'embedded',
  rounds.map((id) => run('embedded:', id)),
)
if (bootstrap !== undefined) {
  const broker = await connectBroker({
    kind: 'kafka',
    options: { bootstrapServers: [bootstrap], clientId: 'millrace-bench' },
  })
  const topics = ['start-in', 'start-out']
  const there = new Set((await broker.topics(topics)).map(({ topic }) => topic))
  await broker.createTopics(topics.filter((t) => !there.has(t)).map((topic) => ({ topic, partitions: 4 })))
  show(
    'kafka',
    rounds.map((id) => run(bootstrap, id)),
  )
  await broker.deleteTopics(topics)
  await broker.close()
}
