import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mutants, runSeed } from './run-seed.ts'
import { Seeds, upTo } from './seeds.ts'

const simulator = new Seeds(new URL('run-seed.ts', import.meta.url))
const seeds = Number(process.env.SIM_SEEDS ?? 2000)
/** Seeds that once failed: each stands for a mistake that was made. */
const regressions = [35, 156, 163, 175, 298, 400, 406, 966]

test(`${seeds} seeds: exactly once, whatever crashes, hangs or gets lost`, { timeout: 1_200_000 }, async (t) => {
  const job = { seeds: [...regressions, ...upTo(seeds)] } as const
  const { restarts } = await simulator.allHold(t, job, 'node test/simulation/replay.ts')
  assert.ok(restarts > seeds / 10, `the faults bite: ${restarts} in-place restarts`)
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
