/**
 * `npm run bench:quiet [-- --rate N --seconds N --warmup N --runs N --lanes N --commit-ms N]`: what an application costs that has little to do. A
 * re-key and count is fed at this rate, and the CPU of each of its threads is shown in per cent of a core, with the commits that it made. The
 * feeding thread is left out. With `$BOOTSTRAP` it runs against that Kafka, otherwise on the embedded broker in the same process.
 */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { median } from './support/usage.ts'

const text = { type: 'string' } as const
const { values } = parseArgs({
  options: {
    rate: { ...text, default: process.env.BOOTSTRAP === undefined ? '1000' : '5000' },
    seconds: { ...text, default: '20' },
    warmup: { ...text, default: '10' },
    runs: { ...text, default: '3' },
    lanes: { ...text, default: '2' },
    'commit-ms': { ...text, default: '100' },
  },
})

interface Run {
  readonly commitsPerSecond: number
  readonly threads: Readonly<Record<string, number>>
}

const runs = Array.from({ length: Number(values.runs) }, () => {
  const script = join(import.meta.dirname, 'support', 'quiet-run.ts')
  const words = [script, values.rate, values.seconds, values.warmup, values.lanes, values['commit-ms']]
  const out = execFileSync(process.execPath, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  return JSON.parse(out.trim().split('\n').at(-1) ?? '') as Run
})
const names = [...new Set(runs.flatMap(({ threads }) => Object.keys(threads)))]
const of = (name: string): number => median(runs.map(({ threads }) => threads[name] ?? 0))
const parts = names
  .map((name) => ({ name, percent: of(name) }))
  .filter(({ percent }) => percent >= 0.05)
  .sort((a, b) => b.percent - a.percent)
const all = median(runs.map(({ threads }) => Object.values(threads).reduce((sum, each) => sum + each, 0)))
const commits = median(runs.map(({ commitsPerSecond }) => commitsPerSecond))
process.stdout.write(
  `${values.rate} records/s: ${all.toFixed(1)} % of a core, ${commits.toFixed(1)} commits/s: ` +
    `${parts.map(({ name, percent }) => `${name} ${percent.toFixed(1)}`).join(', ')}\n`,
)
