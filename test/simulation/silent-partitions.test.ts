import { test } from 'node:test'
import { Seeds, upTo } from './seeds.ts'
import { mutants } from './silent-partitions.ts'

const simulator = new Seeds(new URL('silent-partitions.ts', import.meta.url))
const seeds = Number(process.env.SIM_SILENT_SEEDS ?? 55)
const replay = 'SIM_SILENT_SEEDS=… node --test test/simulation/silent-partitions.test.ts, which stops at'

test(`${seeds} seeds: what a silent partition brings is in time`, { timeout: 900_000 }, async (t) => {
  await simulator.allHold(t, { seeds: upTo(seeds) }, replay)
})

for (const { name } of mutants) {
  test(`notices the mistake ${name}`, { timeout: 600_000 }, async (t) => {
    await simulator.notice(t, name, 400)
  })
}
