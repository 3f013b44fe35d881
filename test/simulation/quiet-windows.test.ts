import { test } from 'node:test'
import { mutants } from './quiet-windows.ts'
import { Seeds, upTo } from './seeds.ts'

const simulator = new Seeds(new URL('quiet-windows.ts', import.meta.url))
const seeds = Number(process.env.SIM_QUIET_SEEDS ?? 60)
const replay = 'SIM_QUIET_SEEDS=… node --test test/simulation/quiet-windows.test.ts, which stops at'

test(`${seeds} seeds: windows that close in quiet tell all of their records, once`, { timeout: 600_000 }, async (t) => {
  await simulator.allHold(t, { seeds: upTo(seeds) }, replay)
})

for (const { name } of mutants) {
  test(`notices the mistake ${name}`, { timeout: 300_000 }, async (t) => {
    await simulator.notice(t, name, 40)
  })
}
