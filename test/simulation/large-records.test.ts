import { test } from 'node:test'
import { mutants } from './large-records.ts'
import { Seeds, upTo } from './seeds.ts'

const simulator = new Seeds(new URL('large-records.ts', import.meta.url))
const seeds = Number(process.env.SIM_LARGE_SEEDS ?? 40)
const replay = 'SIM_LARGE_SEEDS=… node --test test/simulation/large-records.test.ts, which stops at'

test(`${seeds} seeds: what a topic takes is in it, and nothing else`, { timeout: 1_800_000 }, async (t) => {
  await simulator.allHold(t, { seeds: upTo(seeds) }, replay)
})

for (const { name } of mutants) {
  test(`notices the mistake ${name}`, { timeout: 600_000 }, async (t) => {
    await simulator.notice(t, name, 40)
  })
}
