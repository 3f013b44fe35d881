import { test } from 'node:test'
import { Seeds, upTo } from './seeds.ts'
import { mutants } from './topic-order.ts'

const simulator = new Seeds(new URL('topic-order.ts', import.meta.url))
const seeds = Number(process.env.SIM_TOPIC_SEEDS ?? 60)
const replay = 'SIM_TOPIC_SEEDS=… node --test test/simulation/topic-order.test.ts, which stops at'

test(`${seeds} seeds: what goes through topics keeps the order of time`, { timeout: 600_000 }, async (t) => {
  await simulator.allHold(t, { seeds: upTo(seeds) }, replay)
})

for (const { name } of mutants) {
  test(`notices the mistake ${name}`, { timeout: 300_000 }, async (t) => {
    await simulator.notice(t, name, 40)
  })
}
