import { test } from 'node:test'
import { mutants } from './global-tables.ts'
import { Seeds, upTo } from './seeds.ts'

const simulator = new Seeds(new URL('global-tables.ts', import.meta.url))
const seeds = Number(process.env.SIM_GLOBAL_SEEDS ?? 30)
const replay = 'SIM_GLOBAL_SEEDS=… node --test test/simulation/global-tables.test.ts, which stops at'

test(`${seeds} seeds: global tables have what their topics showed`, { timeout: 1_800_000 }, async (t) => {
  await simulator.allHold(t, { seeds: upTo(seeds) }, replay)
})

for (const { name } of mutants) {
  test(`notices the mistake ${name}`, { timeout: 600_000 }, async (t) => {
    await simulator.notice(t, name, 40)
  })
}
