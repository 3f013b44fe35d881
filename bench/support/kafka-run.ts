/**
 * One workload against a real Kafka; see `bench/engine`. The span goes from the first record processed (or from record
 * `--skip` on) until the group's committed offsets have reached the end of the input and a reader of committed records
 * can reach the end of the output.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import { assert } from '../../src/base/assert.ts'
import { engineIndex, sourceTopicSlot } from '../../src/base/counters.ts'
import type { TopicPartition } from '../../src/base/ids.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { startRuntime } from '../../src/runtime/index.ts'
import {
  difference,
  machineSeconds,
  otherProcessSeconds,
  peakMebibytes,
  processSeconds,
  threadSeconds,
} from './usage.ts'

const words = ['map', 'count', 'rekey-count', 'window', 'join', 'rekey-join', 'slow-io', 'latency']
const run = promisify(execFile)
const text = { type: 'string' } as const
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    in: text,
    table: text,
    id: text,
    guarantee: { ...text, default: 'exactly_once_v2' },
    store: { ...text, default: 'memory' },
    threads: { ...text, default: '2' },
    skip: { ...text, default: '0' },
    variant: { ...text, default: '' },
    'commit-ms': { ...text, default: '100' },
    'idle-ms': text,
    'io-ms': { ...text, default: '5' },
    emit: text,
    timeout: { ...text, default: '900' },
    rate: text,
    warmup: text,
    seconds: text,
    keep: { type: 'boolean', default: false },
    detail: { type: 'boolean', default: false },
  },
})

const workload = positionals[0] ?? ''
if (!words.includes(workload)) {
  process.stderr.write(`engine ${words.join('|')} [--option value …]; see the head of bench/engine\n`)
  process.exit(2)
}
if (values.emit !== undefined && !['commit', 'each'].includes(values.emit)) {
  process.stderr.write(`--emit is commit or each, not ${values.emit}\n`)
  process.exit(2)
}
const bootstrap = process.env.BOOTSTRAP ?? `127.0.0.1:${process.env.PEERS_PORT ?? 19092}`
const isLatency = workload === 'latency'
const id = values.id ?? `mr-${workload}-${Date.now().toString(36)}`
const output = `${id}-out`
const input = isLatency ? `${id}-in` : (values.in ?? (workload === 'slow-io' ? 'ev-io' : 'ev'))
const table = values.table ?? (workload === 'rekey-join' ? 'pages' : 'users')
const joins = workload === 'join' || workload === 'rekey-join'
/** Both peers hand over whole values here. What may become a dead letter keeps its value, though the count asks for none. */
const wholeValues = workload === 'rekey-count' || workload === 'latency'
const skip = Number(values.skip)
const deadline = performance.now() + Number(values.timeout) * 1000
const brokerPid = findBroker()

function findBroker(): number | undefined {
  if (process.env.PEERS_BROKER_PID) return Number(process.env.PEERS_BROKER_PID)
  const home = process.env.PEERS_HOME ?? join(homedir(), '.cache', 'peers')
  const file = join(home, 'brokers', bootstrap.split(':').at(-1) ?? '', 'pid')
  return existsSync(file) ? Number(readFileSync(file, 'latin1')) : undefined
}

async function partitionsOf(broker: BrokerPort, topic: string): Promise<TopicPartition[]> {
  const [info] = await broker.topics([topic])
  if (info === undefined) throw new RangeError(`there is no topic ${topic}; fill it first`)
  return Array.from({ length: info.partitions }, (_, partition) => ({ topic, partition }))
}

interface Clocks {
  readonly at: number
  readonly own: number
  readonly broker: number
  readonly machine: number
  readonly commits: number
  readonly threads: Map<string, number>
}

class Measurement {
  readonly #commits: () => number
  #start: Clocks | undefined
  #end: Clocks | undefined

  constructor(commits: () => number) {
    this.#commits = commits
  }

  begin(): void {
    this.#start = this.#clocks()
  }

  end(): void {
    this.#end = this.#clocks()
  }

  report(records: number, meterSeconds: number): Record<string, unknown> {
    const start = this.#start
    const end = this.#end
    assert(start !== undefined && end !== undefined, 'the span has a beginning and an end')
    const seconds = (end.at - start.at) / 1000
    const own = end.own - start.own
    const broker = end.broker - start.broker
    const commits = end.commits - start.commits
    return {
      peer: 'millrace',
      workload,
      guarantee: values.guarantee,
      store: values.store,
      records,
      seconds: rounded(seconds, 3),
      recordsPerSecond: Math.round(records / seconds),
      cpuSeconds: rounded(own, 2),
      rssMiB: peakMebibytes(),
      ...(brokerPid !== undefined && {
        brokerCpuSeconds: rounded(broker, 2),
        otherCpuSeconds: rounded(Math.max(0, end.machine - start.machine - own - broker - meterSeconds), 2),
      }),
      commitEveryMs: commits === 0 ? 0 : Math.round((seconds * 1000) / commits),
      variant: values.variant,
      ...(values.detail && {
        threads: Object.fromEntries([...difference(start.threads, end.threads)].map(([n, s]) => [n, rounded(s, 2)])),
      }),
    }
  }

  #clocks(): Clocks {
    return {
      at: performance.now(),
      own: processSeconds(),
      broker: otherProcessSeconds(brokerPid),
      machine: machineSeconds(),
      commits: this.#commits(),
      threads: threadSeconds(),
    }
  }
}

const rounded = (value: number, places: number): number => Number(value.toFixed(places))

async function until(holds: () => boolean | Promise<boolean>, everyMs: number): Promise<void> {
  while (!(await holds())) {
    if (performance.now() > deadline) throw new RangeError(`not done within ${values.timeout} seconds`)
    await sleep(everyMs)
  }
}

async function main(): Promise<void> {
  Object.assign(process.env, {
    // The meter is a process of its own.
    BOOTSTRAP: bootstrap,
    BENCH_WORKLOAD: workload,
    BENCH_IN: input,
    BENCH_TABLE: table,
    BENCH_OUT: output,
    BENCH_APPLICATION: id,
    BENCH_IO_MS: values['io-ms'],
  })
  const stateDir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const { connectBroker } = await import('../../src/broker/connect.ts')
  const options = { bootstrapServers: [bootstrap], clientId: id, requestTimeoutMs: 30_000 }
  const broker = await connectBroker({ kind: 'kafka', options })
  const config = { 'retention.ms': '-1' }
  if (isLatency) await broker.createTopics([{ topic: input, partitions: 4, config }])
  const sources = await partitionsOf(broker, input)
  await broker.createTopics([{ topic: output, partitions: sources.length, config }])
  if (joins) sources.push(...(await partitionsOf(broker, table)))
  const ends = await broker.listOffsets(sources, 'latest')
  const records = ends.filter((e) => e.topic === input).reduce((sum, e) => sum + e.offset, 0)
  const runtime = await startRuntime({
    application: join(import.meta.dirname, 'app.ts'),
    config: {
      'runtime.http.enabled': false,
      'broker.bootstrap-servers': bootstrap,
      'engine.lanes.count': Number(values.threads),
      'engine.state.store': values.store === 'memory' ? 'memory' : 'lmdb',
      'engine.state.dir': stateDir,
      'engine.processing.guarantee': values.guarantee === 'at_least_once' ? 'at-least-once' : 'exactly-once',
      'commit-barrier.interval-ms': Number(values['commit-ms']),
      ...(values['idle-ms'] !== undefined && { 'commit-barrier.idle-interval-ms': Number(values['idle-ms']) }),
      'source.reset': 'earliest',
      'topology.emit': values.emit === 'commit' ? 'per-commit' : 'on-update',
      'log.level': 'warn',
      ...(wholeValues && { 'errors.decoding': 'dead-letter' }),
    },
    environment: {},
  })
  try {
    const counters = runtime.view.counters()
    assert(counters !== null, 'the engine has counters from the start')
    const { engine, layout } = counters
    const slot = sourceTopicSlot(layout, layout.sourceTopics.indexOf(input))
    const taken = (): number => engine[slot] as number
    const measurement = new Measurement(() => engine[engineIndex.commitsCommitted] as number)
    let extras: Record<string, unknown> = {}
    let done = records
    if (isLatency) {
      await until(() => runtime.view.state().current === 'RUNNING', 20)
      measurement.begin()
      extras = await meter()
      measurement.end()
      done = taken()
    } else {
      await until(() => (skip === 0 ? (engine[engineIndex.recordsDispatched] as number) > 0 : taken() >= skip), 1)
      measurement.begin()
      await until(() => taken() >= records, 5)
      await until(() => allCommitted(broker, ends), 5)
      measurement.end()
    }
    const line = { ...measurement.report(done - skip, Number(extras.meterCpuSeconds ?? 0)), ...extras }
    process.stdout.write(`${JSON.stringify(line)}\n`)
  } finally {
    await runtime.stop()
    rmSync(stateDir, { recursive: true, force: true })
    if (values.keep) process.stderr.write(`output topic: ${output}\n`)
    else await deleteMine(broker)
    await broker.close()
  }
}

async function allCommitted(
  broker: BrokerPort,
  ends: ReadonlyArray<TopicPartition & { offset: number }>,
): Promise<boolean> {
  const committed = await broker.committedOffsets(id, ends, false)
  const reached = new Map(committed.map((c) => [`${c.topic}/${c.partition}`, c.offset]))
  if (!ends.every((end) => (reached.get(`${end.topic}/${end.partition}`) ?? 0) >= end.offset)) return false
  const outputs = await partitionsOf(broker, output)
  const stable = await broker.listOffsets(outputs, 'stable')
  const latest = new Map((await broker.listOffsets(outputs, 'latest')).map((l) => [l.partition, l.offset]))
  return stable.every((s) => s.offset === latest.get(s.partition))
}

/** The meter drives the application, which runs already, and tells what it saw. */
async function meter(): Promise<Record<string, unknown>> {
  const given = (['rate', 'warmup', 'seconds'] as const).flatMap((name) => {
    const value = values[name]
    return value === undefined ? [] : [`--${name}`, value]
  })
  const own = [process.execPath, join(import.meta.dirname, 'meter.ts')]
  const [command = '', ...words] = process.env.PEERS_LATENCY ? [process.env.PEERS_LATENCY] : own
  const { stdout } = await run(command, [...words, '--in', input, '--out', output, ...given], { maxBuffer: 1e8 })
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '{}') as Record<string, unknown>
}

async function deleteMine(broker: BrokerPort): Promise<void> {
  const mine = (await broker.topics(null)).map(({ topic }) => topic).filter((topic) => topic.startsWith(id))
  await broker.deleteTopics(mine)
}

await main()
