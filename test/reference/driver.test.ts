/**
 * Random programs on the test driver against the reference model, as `reference.test.ts` has them on the running engine.
 * REFERENCE_SEEDS: how many; REFERENCE_FROM: the first seed.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { generate } from './generate.ts'
import { differences, expectedOf } from './results.ts'
import { runTestDriver } from './run-test-driver.ts'

const seeds = Number(process.env.REFERENCE_SEEDS ?? 3)
const from = Number(process.env.REFERENCE_FROM ?? 1)

describe('what records become on the test driver', () => {
  for (let seed = from; seed < from + seeds; seed++) {
    for (const lanes of [1, 3]) {
      test(`is what the model says: seed ${seed}, ${lanes} lanes`, async () => {
        const program = generate(seed, { records: 300 })
        const { results, warnings } = await runTestDriver(program, lanes)
        assert.deepEqual([...differences(program, expectedOf(program).results, results), ...warnings], [])
      })
    }
  }
})
