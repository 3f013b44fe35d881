/**
 * What the HTTP interface costs, and how fast it is, while every lane is at full load: `node scripts/http-under-load.ts`.
 * Runs a re-key and count on the embedded broker and prints the latency of probes, metrics and watermarks, and the
 * throughput with a scrape and with a thread dump each second against that without, in turn.
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

async function rate(live: Live, path: string | undefined): Promise<number> {
  const before = processed(live)
  const startedAt = performance.now()
  while (performance.now() - startedAt < windowMs) {
    if (path !== undefined) await ask(live.url, { path })
    await sleep(Math.max(1, Math.min(1000, windowMs - (performance.now() - startedAt))))
  }
  return ((processed(live) - before) * 1000) / (performance.now() - startedAt)
}

const median = (values: readonly number[]): number =>
  quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  )

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
const kinds = [undefined, '/metrics', '/debug/threads'] as const
const rates = new Map<(typeof kinds)[number], number[]>(kinds.map((kind) => [kind, []]))
while (Number((await live.get('/offsets')).totalLag) > records / 3) {
  for (const kind of kinds) rates.get(kind)?.push(await rate(live, kind))
}
const base = median(rates.get(undefined) ?? [])
process.stdout.write(`rounds ${rates.get(undefined)?.length}; without requests ${Math.round(base)} records/s\n`)
for (const kind of kinds.slice(1)) {
  const own = median(rates.get(kind) ?? [])
  process.stdout.write(
    `${kind} each second: ${Math.round(own)} records/s, ${((1 - own / base) * 100).toFixed(1)} % less\n`,
  )
}
await live.stop()
process.exit()
