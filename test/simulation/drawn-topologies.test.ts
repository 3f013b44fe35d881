import { test } from 'node:test'
import { mutants } from './drawn-topologies.ts'
import { Seeds, upTo } from './seeds.ts'

const simulator = new Seeds(new URL('drawn-topologies.ts', import.meta.url))
const seeds = Number(process.env.SIM_DRAWN_SEEDS ?? 60)
const replay = 'SIM_DRAWN_SEEDS=… node --test test/simulation/drawn-topologies.test.ts, which stops at'

test(`${seeds} seeds: a drawn topology makes what the test driver makes`, { timeout: 1_800_000 }, async (t) => {
  await simulator.allHold(t, { seeds: upTo(seeds) }, replay)
})

for (const { name } of mutants) {
  test(`notices the mistake ${name}`, { timeout: 600_000 }, async (t) => {
    await simulator.notice(t, name, 60)
  })
}
