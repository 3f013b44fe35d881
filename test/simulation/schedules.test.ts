import { test } from 'node:test'
import { mutants } from './schedules.ts'
import { Seeds, upTo } from './seeds.ts'

const simulator = new Seeds(new URL('schedules.ts', import.meta.url))
const seeds = Number(process.env.SIM_SCHEDULE_SEEDS ?? 60)
const replay = 'SIM_SCHEDULE_SEEDS=… node --test test/simulation/schedules.test.ts, which stops at'

test(`${seeds} seeds: what schedules put out is counted in its time`, { timeout: 1_800_000 }, async (t) => {
  await simulator.allHold(t, { seeds: upTo(seeds) }, replay)
})

for (const { name } of mutants) {
  test(`notices the mistake ${name}`, { timeout: 600_000 }, async (t) => {
    await simulator.notice(t, name, 40)
  })
}
