import { test } from 'node:test'
import { mutants } from './moving-partitions.ts'
import { Seeds, upTo } from './seeds.ts'

const simulator = new Seeds(new URL('moving-partitions.ts', import.meta.url))
const seeds = Number(process.env.SIM_MOVING_SEEDS ?? 150)
const replay = 'SIM_MOVING_SEEDS=… node --test test/simulation/moving-partitions.test.ts, which stops at'

test(`${seeds} seeds: what is in time stays in time where partitions move`, { timeout: 1_800_000 }, async (t) => {
  await simulator.allHold(t, { seeds: upTo(seeds) }, replay)
})

for (const { name } of mutants) {
  test(`notices the mistake ${name}`, { timeout: 600_000 }, async (t) => {
    await simulator.notice(t, name, 40)
  })
}
