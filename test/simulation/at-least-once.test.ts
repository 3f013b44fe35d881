import { test } from 'node:test'
import { mutants } from './at-least-once.ts'
import { Seeds, upTo } from './seeds.ts'

const simulator = new Seeds(new URL('at-least-once.ts', import.meta.url))
const seeds = Number(process.env.SIM_AT_LEAST_ONCE_SEEDS ?? 100)
const replay = 'SIM_AT_LEAST_ONCE_SEEDS=… node --test test/simulation/at-least-once.test.ts, which stops at'

test(`${seeds} seeds: with at-least-once nothing is left out`, { timeout: 600_000 }, async (t) => {
  await simulator.allHold(t, { seeds: upTo(seeds) }, replay)
})

for (const { name } of mutants) {
  test(`notices the mistake ${name}`, { timeout: 300_000 }, async (t) => {
    // One in eighteen notices that stores are ahead of results; it ends at the first.
    await simulator.notice(t, name, 150)
  })
}
