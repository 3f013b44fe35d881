import { test } from 'node:test'
import { mutants } from './overtaken-timers.ts'
import { Seeds, upTo } from './seeds.ts'

const simulator = new Seeds(new URL('overtaken-timers.ts', import.meta.url))
const seeds = Number(process.env.SIM_TIMERS_SEEDS ?? 60)
const replay = 'SIM_TIMERS_SEEDS=… node --test test/simulation/overtaken-timers.test.ts, which stops at'

test(`${seeds} seeds: no record comes to a task before the timers due before it`, { timeout: 600_000 }, async (t) => {
  await simulator.allHold(t, { seeds: upTo(seeds) }, replay)
})

for (const { name } of mutants) {
  test(`notices the mistake ${name}`, { timeout: 300_000 }, async (t) => {
    await simulator.notice(t, name, 40)
  })
}
