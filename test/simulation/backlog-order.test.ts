import { test } from 'node:test'
import { mutants } from './backlog-order.ts'
import { Seeds, upTo } from './seeds.ts'

const simulator = new Seeds(new URL('backlog-order.ts', import.meta.url))
const seeds = Number(process.env.SIM_BACKLOG_SEEDS ?? 24)
const replay = 'SIM_BACKLOG_SEEDS=… node --test test/simulation/backlog-order.test.ts, which stops at'

test(`${seeds} seeds: a backlog keeps its order, though a process is far behind`, { timeout: 1_800_000 }, async (t) => {
  await simulator.allHold(t, { seeds: upTo(seeds) }, replay)
})

for (const { name } of mutants) {
  test(`notices the mistake ${name}`, { timeout: 600_000 }, async (t) => {
    await simulator.notice(t, name, 40)
  })
}
