import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mutants } from './mutants.ts'
import { runSeed } from './run-seed.ts'

const seeds = Number(process.env.SIM_SEEDS ?? 2000)
/** Seeds that once failed: each stands for a mistake that was made. */
const regressions = [156, 175, 298, 400, 406, 966]

test(`${seeds} seeds: exactly once, whatever crashes, hangs or gets lost`, { timeout: 1_200_000 }, async () => {
  let restarts = 0
  for (const seed of [...regressions, ...Array.from({ length: seeds }, (_, i) => i + 1)]) {
    const verdict = await runSeed(seed)
    restarts += verdict.restarts
    assert.deepEqual(
      verdict.violations,
      [],
      `seed ${seed} violates the protocol; replay it with: node test/simulation/replay.ts ${seed}\n${JSON.stringify(verdict.derived)}\n${verdict.story}`,
    )
  }
  assert.ok(restarts > seeds / 10, `the faults bite: ${restarts} in-place restarts`)
})

/** Most mistakes show within a few seeds, some in one of several hundred. */
const mutantSeeds = 1500

for (const mutant of mutants) {
  test(`notices the mistake ${mutant.name}`, { timeout: 600_000 }, async () => {
    for (let seed = 1; seed <= mutantSeeds; seed++) {
      if ((await runSeed(seed, mutant)).violations.length > 0) return
    }
    assert.fail(`${mutant.name} went unnoticed in ${mutantSeeds} seeds`)
  })
}

test('the same seed gives the same run', async () => {
  for (const seed of [3, 17, 156]) assert.deepEqual(await runSeed(seed), await runSeed(seed))
})
