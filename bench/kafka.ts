/**
 * `npm run bench:kafka [-- WORKLOAD …] [-- --runs N --records N --skip N --store memory|rocksdb --emit commit|each --alone --json]`: the
 * workloads against the Kafka at `$BOOTSTRAP` (`npm run kafka` starts one), Millrace and Kafka Streams in turn
 * (A B A B …), every run in a process of its own, so that both meet the same machine. Two million records from the first
 * one are a cold run; `--records 8000000` is a warm one, measured over its second half. The output of every run is read
 * back: where two runs of a workload differ, the benchmark fails. `--emit`: whether both tell each changed key once per commit, or
 * every update; left out, Millrace tells every update, and Kafka Streams does what is faster for it. `latency` is a workload too. `--alone` leaves Kafka
 * Streams out. Missing input is generated. Kafka Streams needs a JDK 17 and Maven.
 */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { homedir, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { connectBroker } from '../src/broker/connect.ts'
import type { BrokerPort } from '../src/broker/port.ts'
import { produceEvents, produceUsers } from './support/events.ts'
import { kafkaStreamsCommand } from './support/kafka-streams.ts'
import { outcome } from './support/outcome.ts'
import { median } from './support/usage.ts'

/** Two runs over the same input have put out different results. */
class Differing extends Error {}

interface Line {
  readonly peer: string
  readonly workload: string
  readonly records: number
  readonly seconds: number
  readonly recordsPerSecond: number
  readonly cpuSeconds: number
  readonly brokerCpuSeconds?: number
  readonly rssMiB: number
  readonly commitEveryMs?: number
  readonly p50Ms?: number
  readonly p99Ms?: number
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '3' },
    records: { type: 'string', default: '2000000' },
    skip: { type: 'string' },
    store: { type: 'string', default: 'memory' },
    emit: { type: 'string' },
    alone: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    warmup: { type: 'string', default: '20' },
    seconds: { type: 'string', default: '60' },
  },
})
const all = ['map', 'count', 'rekey-count', 'window', 'join', 'rekey-join', 'slow-io', 'latency']
const workloads = positionals.length > 0 ? positionals : all
const unknown = workloads.filter((word) => !all.includes(word))
if (unknown.length > 0) {
  process.stderr.write(`there is no workload ${unknown.join(', ')}; there are ${all.join(', ')}\n`)
  process.exit(2)
}
if (values.emit !== undefined && !['commit', 'each'].includes(values.emit)) {
  process.stderr.write(`--emit is commit or each, not ${values.emit}\n`)
  process.exit(2)
}
const records = Number(values.records)
const coldRecords = 2_000_000
const skip = Number(values.skip ?? (records > coldRecords ? records / 2 : 0))
const bootstrap = process.env.BOOTSTRAP ?? '127.0.0.1:9092'
const partitions = 4
const users = 100_000
const pages = 2000
const ioRecords = 20_000
const events = records === coldRecords ? 'ev' : `ev-${records}`
const brokerPid = process.env.PEERS_BROKER_PID ?? startedHere()
const env = { ...process.env, BOOTSTRAP: bootstrap, ...(brokerPid !== undefined && { PEERS_BROKER_PID: brokerPid }) }
const options = { bootstrapServers: [bootstrap], clientId: 'millrace-bench' }
const broker = await connectBroker({ kind: 'kafka', options })
const scratch = mkdtempSync(join(tmpdir(), 'millrace-bench-'))

/** The broker that `npm run kafka` started, for its CPU time. */
function startedHere(): string | undefined {
  const cache = process.env.MILLRACE_CACHE ?? join(homedir(), '.cache', 'millrace')
  const file = join(cache, 'brokers', bootstrap.split(':').at(-1) ?? '', 'pid')
  return existsSync(file) ? readFileSync(file, 'latin1').trim() : undefined
}

async function fillTopics(): Promise<void> {
  const there = new Set((await broker.topics(null)).map(({ topic }) => topic))
  const size = { records, users, pages, seed: 7 }
  if (!there.has(events)) await produceEvents(broker, events, partitions, size)
  if (!there.has('users')) await produceUsers(broker, 'users', partitions, users)
  if (!there.has('pages')) await produceUsers(broker, 'pages', partitions, pages, 'p')
  if (!there.has('ev-io')) {
    await produceEvents(broker, 'ev-io', partitions, { ...size, records: ioRecords, users: 1000 })
  }
}

const inputOf = (workload: string): string => (workload === 'slow-io' ? 'ev-io' : events)
const skipOf = (workload: string): string => (workload === 'slow-io' ? '0' : String(skip))

/** Runs a command and gives the last line that it printed. */
function answer(command: string, words: readonly string[]): Line {
  const out = execFileSync(command, words, { encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'inherit'] })
  return JSON.parse(out.trim().split('\n').at(-1) ?? '') as Line
}

const emitting = values.emit === undefined ? [] : ['--emit', values.emit]
const engine = join(import.meta.dirname, 'engine')

async function ours(workload: string): Promise<Line> {
  const id = `mr-${workload}-${Date.now().toString(36)}`
  const words = [workload, '--store', values.store, '--id', id, '--keep', ...emitting]
  if (workload === 'latency') {
    return settled(id, undefined, () =>
      answer(engine, [...words, '--warmup', values.warmup, '--seconds', values.seconds]),
    )
  }
  const input = ['--in', inputOf(workload), '--skip', skipOf(workload)]
  return settled(id, workload, () => answer(engine, [...words, ...input]))
}

async function theirs(workload: string, [java = '', ...jvm]: readonly string[]): Promise<Line> {
  const id = `ks-${workload}-${Date.now().toString(36)}`
  const out = `${id}-out`
  const config = { 'retention.ms': '-1' }
  await broker.createTopics([{ topic: out, partitions, config }])
  const words = ['--bootstrap', bootstrap, '--id', id, '--out', out, '--state', scratch, '--store', values.store]
  words.push('--table', workload === 'rekey-join' ? 'pages' : 'users', ...emitting)
  if (brokerPid !== undefined) words.push('--broker-pid', brokerPid)
  if (workload === 'latency') {
    await broker.createTopics([{ topic: `${id}-in`, partitions, config }])
    return settled(id, undefined, () => measured([java, ...jvm, workload, ...words, '--in', `${id}-in`], id))
  }
  const input = ['--in', inputOf(workload), '--skip', skipOf(workload)]
  return settled(id, workload, () => answer(java, [...jvm, workload, ...words, ...input]))
}

/** Kafka Streams serves while the meter drives it. */
async function measured([command = '', ...words]: readonly string[], id: string): Promise<Line> {
  const child = spawn(command, words, { stdio: ['pipe', 'pipe', 'inherit'], env })
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    said += part
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  while (!said.includes('ready')) {
    if (child.exitCode !== null) throw new RangeError('Kafka Streams has ended before it was ready')
    await sleep(20)
  }
  const meter = [join(import.meta.dirname, 'support', 'meter.ts'), '--in', `${id}-in`, '--out', `${id}-out`]
  const startedAt = performance.now()
  const seen = answer(process.execPath, [...meter, '--warmup', values.warmup, '--seconds', values.seconds])
  const seconds = (performance.now() - startedAt) / 1000
  child.stdin.end()
  await ended
  const used = JSON.parse(said.trim().split('\n').at(-1) ?? '{}') as Line
  return { ...seen, ...used, peer: 'kafka-streams', workload: 'latency', records: 0, seconds, recordsPerSecond: 0 }
}

const outcomes = new Map<string, { readonly text: string; readonly peer: string }>()

/** Runs, reads what came out, and takes the topics away. */
async function settled(id: string, workload: string | undefined, work: () => Line | Promise<Line>): Promise<Line> {
  try {
    const line = await work()
    if (workload !== undefined) await compare(workload, line.peer, `${id}-out`)
    if (values.json) process.stdout.write(`${JSON.stringify(line)}\n`)
    return line
  } finally {
    const mine = (await broker.topics(null)).map(({ topic }) => topic).filter((topic) => topic.startsWith(id))
    await broker.deleteTopics(mine)
  }
}

async function compare(workload: string, peer: string, topic: string): Promise<void> {
  const text = await outcome(broker as BrokerPort, workload, topic, records)
  const first = outcomes.get(workload)
  if (first === undefined) outcomes.set(workload, { text, peer })
  else if (first.text !== text) {
    throw new Differing(
      `The outputs of ${workload} differ: ${first.peer} put out "${first.text}" and ${peer} "${text}" ` +
        '(what was compared, records, keys, digest). One of them is wrong, so that their speeds say nothing.',
    )
  }
}

function show(workload: string, lines: readonly Line[]): void {
  const of = (pick: (line: Line) => number): number => median(lines.map(pick))
  const head = `${workload.padEnd(12)} ${(lines[0]?.peer ?? '').padEnd(14)}`
  const load = (loadavg()[0] ?? 0).toFixed(1)
  const used = `${of((l) => l.cpuSeconds).toFixed(2)} CPU s  ${of((l) => l.rssMiB)} MiB  load ${load}`
  if (workload === 'latency') {
    const [p50, p99] = [of((l) => l.p50Ms ?? 0), of((l) => l.p99Ms ?? 0)]
    process.stdout.write(`${head} p50 ${p50.toFixed(1)} ms  p99 ${p99.toFixed(1)} ms  ${used}\n`)
    return
  }
  const perSecond = Math.round(of((l) => l.recordsPerSecond)).toLocaleString('en')
  const others = `broker ${of((l) => l.brokerCpuSeconds ?? 0).toFixed(2)} s`
  process.stdout.write(`${head} ${perSecond.padStart(9)} records/s  ${others}  ${used}\n`)
}

function ratio(workload: string, mine: readonly Line[], others: readonly Line[]): void {
  const [better, worse] = workload === 'latency' ? [others, mine] : [mine, others]
  const of = (line: Line): number => (workload === 'latency' ? (line.p99Ms ?? Number.NaN) : line.recordsPerSecond)
  const rate = median(better.map(of)) / median(worse.map(of))
  const cpu = median(mine.map((l) => l.cpuSeconds)) / median(others.map((l) => l.cpuSeconds))
  process.stdout.write(`${workload.padEnd(12)} ratio ${rate.toFixed(2)}, of CPU ${cpu.toFixed(2)}\n`)
}

try {
  await fillTopics()
  const command = values.alone ? undefined : await kafkaStreamsCommand()
  for (const workload of workloads) {
    const mine: Line[] = []
    const others: Line[] = []
    for (let i = 0; i < Number(values.runs); i++) {
      mine.push(await ours(workload))
      if (command !== undefined) others.push(await theirs(workload, command))
    }
    show(workload, mine)
    if (others.length > 0) {
      show(workload, others)
      ratio(workload, mine, others)
    }
  }
} catch (error) {
  if (!(error instanceof Differing)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
} finally {
  await broker.close()
  rmSync(scratch, { recursive: true, force: true })
}
