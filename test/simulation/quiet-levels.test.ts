import { test } from 'node:test'
import { mutants } from './quiet-levels.ts'
import { Seeds, upTo } from './seeds.ts'

const simulator = new Seeds(new URL('quiet-levels.ts', import.meta.url))
const seeds = Number(process.env.SIM_QUIET_LEVELS_SEEDS ?? 40)
const replay = 'SIM_QUIET_LEVELS_SEEDS=… node --test test/simulation/quiet-levels.test.ts, which stops at'

test(`${seeds} seeds: windows of windows that close in quiet tell all of their records, once`, {
  timeout: 600_000,
}, async (t) => {
  await simulator.allHold(t, { seeds: upTo(seeds) }, replay)
})

for (const { name } of mutants) {
  test(`notices the mistake ${name}`, { timeout: 300_000 }, async (t) => {
    await simulator.notice(t, name, 150)
  })
}
