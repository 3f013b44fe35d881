/**
 * `node bench/curves.ts [partitions | keys | steady-keys | kafka-keys | stores …] [--records N --runs N]`: CPU time of a record as the number of
 * partitions, of keys in a durable store, and of stores grows, on the embedded broker. Prints each point beside the first
 * one of its curve; the aim is that none is dearer by more than 30 %. `steady-keys` is `keys` with a row of each key there
 * when the span begins; the span of `keys` begins with an empty store.
 */
import { execFileSync } from 'node:child_process'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { connectBroker } from '../src/broker/connect.ts'
import { produceEvents } from './support/events.ts'
import { median } from './support/usage.ts'

interface Run {
  readonly microsecondsPerRecord: number
  readonly recordsPerSecond: number
  readonly peakMebibytes: number
  readonly load: number
}

/** What `kafka-run.ts` prints of it. */
interface KafkaRun {
  readonly cpuSeconds: number
  readonly records: number
  readonly recordsPerSecond: number
  readonly rssMiB: number
}

interface Point {
  readonly at: number
  readonly words: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  /** Against Kafka: the topic of the input, which has this many keys. */
  readonly topic?: string
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { records: { type: 'string', default: '2000000' }, runs: { type: 'string', default: '3' } },
})
const lanes = '2'
const bootstrap = process.env.BOOTSTRAP ?? '127.0.0.1:9092'

const curves: Readonly<Record<string, readonly Point[]>> = {
  partitions: [4, 16, 64, 256].map((at) => ({
    at,
    words: ['rekey-count', values.records, lanes, 'memory', String(at)],
  })),
  keys: [10_000, 100_000, 2_000_000].map((at) => ({
    at,
    words: ['count', values.records, lanes, 'lmdb', '4', String(at)],
  })),
  'steady-keys': [10_000, 100_000, 2_000_000].map((at) => ({
    at,
    words: ['count', values.records, lanes, 'lmdb', '4', String(at), 'steady'],
  })),
  'kafka-keys': [10_000, 100_000, 2_000_000].map((at) => {
    const topic = `curve-${at}-${values.records}`
    const skip = String(Number(values.records) / 2)
    return { at, topic, words: ['count', '--in', topic, '--store', 'rocksdb', '--threads', lanes, '--skip', skip] }
  }),
  stores: [1, 5, 20].map((at) => ({
    at,
    words: ['stores', values.records, lanes, 'memory'],
    environment: { BENCH_STORES: String(at) },
  })),
}

function run({ words, environment, topic }: Point): Run {
  const file = topic === undefined ? 'embedded-run.ts' : 'kafka-run.ts'
  const text = execFileSync(process.execPath, [join(import.meta.dirname, 'support', file), ...words], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, BOOTSTRAP: bootstrap, ...environment },
  })
  const line = JSON.parse(text.trim().split('\n').at(-1) ?? '')
  if (topic === undefined) return line as Run
  const { cpuSeconds, records, recordsPerSecond, rssMiB } = line as KafkaRun
  return {
    microsecondsPerRecord: (cpuSeconds * 1e6) / records,
    recordsPerSecond,
    peakMebibytes: rssMiB,
    load: loadavg()[0] as number,
  }
}

/** Generates the inputs that are not there. */
async function fill(points: readonly Point[]): Promise<void> {
  const broker = await connectBroker({
    kind: 'kafka',
    options: { bootstrapServers: [bootstrap], clientId: 'millrace-bench' },
  })
  try {
    const there = new Set((await broker.topics(null)).map(({ topic }) => topic))
    for (const { topic, at } of points) {
      if (topic === undefined || there.has(topic)) continue
      process.stderr.write(`generating ${topic} …\n`)
      await produceEvents(broker, topic, 4, { records: Number(values.records), users: at, pages: 2000, seed: 7 })
    }
  } finally {
    await broker.close()
  }
}

function show(name: string, points: readonly Point[]): void {
  // Round by round, so that a change of the machine's load meets all points.
  const runs = points.map((): Run[] => [])
  for (let round = 0; round < Number(values.runs); round++) {
    for (const [i, point] of points.entries()) runs[i]?.push(run(point))
  }
  const cost = runs.map((of) => median(of.map((r) => r.microsecondsPerRecord)))
  points.forEach(({ at }, i) => {
    const of = runs[i] as Run[]
    const ratio = (cost[i] as number) / (cost[0] as number)
    process.stdout.write(
      `${name.padEnd(11)} ${at.toLocaleString('en').padStart(10)}  ${(cost[i] as number).toFixed(2)} µs CPU a record  ` +
        `${ratio.toFixed(2)} of the first  ${median(of.map((r) => r.peakMebibytes))} MiB  ` +
        `load ${median(of.map((r) => r.load)).toFixed(1)}\n`,
    )
  })
}

for (const name of positionals.length > 0 ? positionals : ['partitions', 'keys', 'steady-keys', 'stores']) {
  const points = curves[name]
  if (points === undefined)
    throw new RangeError(`there is no curve ${name}; there are ${Object.keys(curves).join(', ')}`)
  if (points.some(({ topic }) => topic !== undefined)) await fill(points)
  show(name, points)
}
