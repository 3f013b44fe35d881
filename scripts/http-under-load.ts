/**
 * What the HTTP interface costs, and how fast it is, while every lane is at full load:
 * `node scripts/http-under-load.ts [records] [why|console|metrics|threads]`.
 * Runs a re-key and count on the embedded broker and prints the latency of probes, metrics and watermarks, and what a
 * record costs while something is asked, in pairs with the time beside it in which nothing is.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { ask } from '../test/http/support/client.ts'
import { type Live, startLive } from '../test/http/support/live.ts'

const records = Number(process.argv[2] ?? 1_500_000)
const windowMs = 2000
const requests = 1000

const quantile = (sorted: readonly number[], q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN

const processed = (live: Live): number => {
  const counters = live.runtime.view.counters()
  return counters === null ? 0 : counters.lanes.reduce((sum, block) => sum + (block[1] ?? 0), 0)
}

async function latencies(live: Live, path: string): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < requests; i++) {
    const startedAt = performance.now()
    const { status } = await ask(live.url, { path })
    if (status !== 200) process.stdout.write(`${path} answered ${status}\n`)
    times.push(performance.now() - startedAt)
  }
  return times.sort((a, b) => a - b)
}

interface Window {
  readonly recordsPerSecond: number
  /** What the process takes of the processors for one record, in microseconds. */
  readonly cpuMicros: number
  /** Share of one processor that the control thread takes, which answers; the one who asks here is in it as well. */
  readonly control: number
}

/** Asks all paths once every `everyMs`, while the engine works. */
async function measured(live: Live, { paths, everyMs }: Kind): Promise<Window> {
  const before = processed(live)
  const cpu = process.cpuUsage()
  const ownCpu = process.threadCpuUsage()
  const startedAt = performance.now()
  while (performance.now() - startedAt < windowMs) {
    const askedAt = performance.now()
    await Promise.all(paths.map((path) => ask(live.url, { path })))
    const left = Math.min(askedAt + everyMs, startedAt + windowMs) - performance.now()
    await sleep(Math.max(1, left))
  }
  const { user, system } = process.cpuUsage(cpu)
  const own = process.threadCpuUsage(ownCpu)
  const records = processed(live) - before
  const ms = performance.now() - startedAt
  return {
    recordsPerSecond: (records * 1000) / ms,
    cpuMicros: (user + system) / records,
    control: (own.user + own.system) / 1000 / ms,
  }
}

const median = (values: readonly number[]): number =>
  quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  )

interface Kind {
  readonly name: string
  readonly paths: readonly string[]
  readonly everyMs: number
}

const nothing: Kind = { name: 'nothing', paths: [], everyMs: 1000 }
const percent = (shares: readonly number[]): string => `${(median(shares) * 100).toFixed(2)} %`
const wanted = process.argv[3] ?? ''
const allKinds: readonly Kind[] = [
  { name: '/metrics each second', paths: ['/metrics'], everyMs: 1000 },
  { name: '/debug/threads each second', paths: ['/debug/threads'], everyMs: 1000 },
  { name: '/why each second', paths: ['/why'], everyMs: 1000 },
  {
    name: "the console's first page, every two seconds",
    paths: ['/why', '/flow?history=true', '/offsets', '/state', '/health/ready'],
    everyMs: 2000,
  },
]
const kinds = allKinds.filter(({ name }) => name.includes(wanted))

const live = await startLive({ app: 'load-app', config: { 'broker.embedded.partitions': 4, 'log.level': 'error' } })
await live.untilState('RUNNING')
await live.ask({ method: 'POST', path: '/pause' })
await live.untilState('PAUSED')
for (let from = 0; from < records; from += 20_000) {
  const batch = Array.from({ length: 20_000 }, (_, i) => ({
    key: `k${(from + i) % 5000}`,
    value: { page: from + i, agent: 'a browser of some kind', at: 1_700_000_000_000 + from + i },
    timestamp: 1_700_000_000_000 + from + i,
  }))
  await live.feed('hits', batch)
}
await live.ask({ method: 'POST', path: '/unpause' })
await sleep(1500)
for (const path of ['/health/live', '/metrics', '/watermarks']) {
  const times = await latencies(live, path)
  const lag = (await live.get('/offsets')).totalLag
  const [p50, p99] = [quantile(times, 0.5).toFixed(1), quantile(times, 0.99).toFixed(1)]
  process.stdout.write(
    `${path}: p50 ${p50} ms, p99 ${p99} ms (${Number(lag) > 0 ? 'under load' : 'the load had ended'})\n`,
  )
}
const pairs = new Map<Kind, Array<readonly [without: Window, asked: Window]>>(kinds.map((kind) => [kind, []]))
while (Number((await live.get('/offsets')).totalLag) > records / 5) {
  for (const kind of kinds) {
    // Neighbours in time, in turns the one and the other first: what else the machine does meets both.
    const own = pairs.get(kind) as Array<readonly [Window, Window]>
    if (own.length % 2 === 0) own.push([await measured(live, nothing), await measured(live, kind)])
    else {
      const asked = await measured(live, kind)
      own.push([await measured(live, nothing), asked])
    }
  }
}
for (const [{ name }, own] of pairs) {
  const change = (of: (window: Window) => number): string => {
    const ratios = own.map(([without, asked]) => of(asked) / of(without))
    return `${((median(ratios) - 1) * 100).toFixed(1)} %`
  }
  const base = median(own.map(([without]) => without.cpuMicros)).toFixed(2)
  process.stdout.write(
    `${name}: CPU a record ${change(({ cpuMicros }) => cpuMicros)} (of ${base} µs), ` +
      `records a second ${change(({ recordsPerSecond }) => recordsPerSecond)}; control thread ` +
      `${percent(own.map(([{ control }]) => control))} of a processor, ` +
      `${percent(own.map(([, { control }]) => control))} while asked; ${own.length} pairs\n`,
  )
}
await live.stop()
process.exit()
