import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mutants } from './mutants.ts'
import { runSeed } from './run-seed.ts'

/** About a minute of one quiet processor; `HA_SIM_SEEDS` asks for fewer or more. */
const seeds = Number(process.env.HA_SIM_SEEDS ?? 2000)
/** Seeds that once failed: each stands for a mistake that was made. */
const regressions = [16, 197, 265, 305, 393, 449, 594, 785, 1055, 1096, 1108, 1628, 1844]

test(`${seeds} seeds: one chain of commits, and one active pod in the end`, { timeout: 1_200_000 }, async () => {
  let promotions = 0
  for (const seed of [...regressions, ...Array.from({ length: seeds }, (_, i) => i + 1)]) {
    const verdict = await runSeed(seed)
    promotions += verdict.promotions
    assert.deepEqual(
      verdict.violations,
      [],
      `seed ${seed} violates the protocol; replay it with: node test/simulation-ha/replay.ts ${seed}\n` +
        `${JSON.stringify(verdict.derived)}\n${verdict.story.join('\n')}`,
    )
  }
  assert.ok(promotions > 1.5 * seeds, `the faults bite: ${promotions} promotions`)
})

const realSeeds = Number(process.env.HA_SIM_REAL_SEEDS ?? 150)
const realRegressions = [258, 275, 286, 294]

test(`${realSeeds} seeds with the real engine in every pod: exactly once, in every store`, {
  timeout: 1_200_000,
}, async () => {
  for (const seed of [...realRegressions, ...Array.from({ length: realSeeds }, (_, i) => i + 1)]) {
    const verdict = await runSeed(seed, undefined, 'real')
    assert.deepEqual(
      verdict.violations,
      [],
      `seed ${seed} violates the protocol; replay it with: HA_SIM_ENGINE=real node test/simulation-ha/replay.ts ${seed}\n` +
        `${JSON.stringify(verdict.derived)}\n${verdict.story.join('\n')}`,
    )
  }
})

for (const mutant of mutants) {
  test(`notices the mistake ${mutant.name}`, { timeout: 600_000 }, async () => {
    for (let seed = 1; seed <= 1500; seed++) {
      if ((await runSeed(seed, mutant)).violations.length > 0) return
    }
    assert.fail(`${mutant.name} went unnoticed in 1500 seeds`)
  })
}

test('the same seed gives the same run', async () => {
  for (const seed of [3, 17, 156]) assert.deepEqual(await runSeed(seed), await runSeed(seed))
})
