import { test } from 'node:test'
import { Seeds, upTo } from './seeds.ts'
import { mutants } from './slow-functions.ts'

const simulator = new Seeds(new URL('slow-functions.ts', import.meta.url))
const seeds = Number(process.env.SIM_SLOW_SEEDS ?? 150)
/** In these a lane's speed was taken for higher than it was. */
const known = [249, 926, 961]
const replay = 'SIM_SLOW_SEEDS=… node --test test/simulation/slow-functions.test.ts, which stops at'

test(`${seeds} seeds: commits come as long as functions return`, { timeout: 1_800_000 }, async (t) => {
  await simulator.allHold(t, { seeds: [...known, ...upTo(seeds)] }, replay)
})

for (const { name } of mutants) {
  test(`notices the mistake ${name}`, { timeout: 600_000 }, async (t) => {
    await simulator.notice(t, name, 100)
  })
}
