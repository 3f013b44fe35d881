import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Seeds, upTo } from '../simulation/seeds.ts'
import { mutants } from './mutants.ts'
import { runSeed } from './run-seed.ts'

const simulator = new Seeds(new URL('run-seed.ts', import.meta.url))
/** Under a minute of one quiet processor; `HA_SIM_SEEDS` asks for fewer or more. */
const seeds = Number(process.env.HA_SIM_SEEDS ?? 2000)
/** Seeds that once failed: each stands for a mistake that was made. */
const regressions = [16, 197, 265, 305, 393, 449, 594, 785, 1055, 1096, 1108, 1628, 1844]

test(`${seeds} seeds: one chain of commits, and one active pod in the end`, { timeout: 1_200_000 }, async (t) => {
  const job = { seeds: [...regressions, ...upTo(seeds)] } as const
  const { promotions } = await simulator.allHold(t, job, 'node test/simulation-ha/replay.ts')
  assert.ok(promotions > 1.5 * seeds, `the faults bite: ${promotions} promotions`)
})

const realSeeds = Number(process.env.HA_SIM_REAL_SEEDS ?? 150)
const realRegressions = [258, 275, 286, 294, 428]

test(`${realSeeds} seeds with the real engine in every pod: exactly once, in every store`, {
  timeout: 1_200_000,
}, async (t) => {
  const job = { seeds: [...realRegressions, ...upTo(realSeeds)], engine: 'real' } as const
  await simulator.allHold(t, job, 'HA_SIM_ENGINE=real node test/simulation-ha/replay.ts')
})

/** Each mistake's world is such that it shows in one seed of twenty or more. */
const mutantSeeds = 400

for (const mutant of mutants) {
  test(`notices the mistake ${mutant.name}`, { timeout: 600_000 }, async (t) => {
    await simulator.notice(t, mutant.name, mutantSeeds)
  })
}

test('the same seed gives the same run', async () => {
  for (const seed of [3, 17, 156]) assert.deepEqual(await runSeed(seed), await runSeed(seed))
})
