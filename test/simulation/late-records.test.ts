import { test } from 'node:test'
import { mutants } from './late-records.ts'
import { Seeds, upTo } from './seeds.ts'

const simulator = new Seeds(new URL('late-records.ts', import.meta.url))
const seeds = Number(process.env.SIM_LATE_SEEDS ?? 100)
const replay = 'SIM_LATE_SEEDS=… node --test test/simulation/late-records.test.ts, which stops at'

test(`${seeds} seeds: late records keep their order behind slow timers`, { timeout: 600_000 }, async (t) => {
  await simulator.allHold(t, { seeds: upTo(seeds) }, replay)
})

for (const { name } of mutants) {
  test(`notices the mistake ${name}`, { timeout: 300_000 }, async (t) => {
    await simulator.notice(t, name, 40)
  })
}
