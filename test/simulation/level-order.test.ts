import { test } from 'node:test'
import { mutants } from './level-order.ts'
import { Seeds, upTo } from './seeds.ts'

const simulator = new Seeds(new URL('level-order.ts', import.meta.url))
const seeds = Number(process.env.SIM_LEVEL_SEEDS ?? 150)
const replay = 'SIM_LEVEL_SEEDS=… node --test test/simulation/level-order.test.ts, which stops at'

test(`${seeds} seeds: records keep one order across lanes and levels`, { timeout: 600_000 }, async (t) => {
  await simulator.allHold(t, { seeds: upTo(seeds) }, replay)
})

for (const { name } of mutants) {
  test(`notices the mistake ${name}`, { timeout: 300_000 }, async (t) => {
    await simulator.notice(t, name, 40)
  })
}
