import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Seeds, upTo } from './seeds.ts'
import { mutants, ProgramWorld } from './topic-programs.ts'

const simulator = new Seeds(new URL('topic-programs.ts', import.meta.url))
const seeds = Number(process.env.SIM_TOPIC_PROGRAM_SEEDS ?? 40)
/** One process came to the end of its input before others had told theirs. */
const regressions = [297, 339, 375]
const replay = 'SIM_TOPIC_PROGRAM_SEEDS=… node --test test/simulation/topic-programs.test.ts, which stops at'

test(`${seeds} seeds: programs through topics do what the model says, and come to their end`, {
  timeout: 900_000,
}, async (t) => {
  await simulator.allHold(t, { seeds: [...regressions, ...upTo(seeds)] }, replay)
})

test('partitions are not given away between two tries of a restart in place', { timeout: 300_000 }, async () => {
  const world = new ProgramWorld(338, {}, { processes: 2, lost: 0.005 })
  await world.run()
  assert.deepEqual(world.violations, [])
})

for (const { name } of mutants) {
  test(`notices the mistake ${name}`, { timeout: 300_000 }, async (t) => {
    await simulator.notice(t, name, 40)
  })
}
