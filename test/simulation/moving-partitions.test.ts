import { test } from 'node:test'
import { mutants } from './moving-partitions.ts'
import { Seeds, upTo } from './seeds.ts'

const simulator = new Seeds(new URL('moving-partitions.ts', import.meta.url))
const seeds = Number(process.env.SIM_MOVING_SEEDS ?? 150)
/** A commit whose outcome nobody saw, of partitions that others had by then; stores with commits of other partitions. */
const regressions = [279, 135, 309]
const replay = 'SIM_MOVING_SEEDS=… node --test test/simulation/moving-partitions.test.ts, which stops at'

test(`${seeds} seeds: what is in time stays in time where partitions move`, { timeout: 1_800_000 }, async (t) => {
  await simulator.allHold(t, { seeds: [...regressions, ...upTo(seeds)] }, replay)
})

for (const { name } of mutants) {
  test(`notices the mistake ${name}`, { timeout: 600_000 }, async (t) => {
    await simulator.notice(t, name, 40)
  })
}
