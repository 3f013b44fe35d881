/**
 * Random programs in which functions fail on some records, at once and behind promises, and some values cannot be decoded, against
 * the model in which such a record ends at its operator: results, and each dead letter once. FAILING_SEEDS: how many;
 * FAILING_FROM: the first; FAILING_RECORDS: how long the input is. A seed that fails is replayed by
 * `REFERENCE_FAILS=1 node test/reference/replay.ts`.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { failureOf, titleOf } from './seed.ts'

const seeds = Number(process.env.FAILING_SEEDS ?? 2)
const from = Number(process.env.FAILING_FROM ?? 12)
const records = Number(process.env.FAILING_RECORDS ?? 500)

describe('what records become where functions fail', () => {
  for (let seed = from; seed < from + seeds; seed++) {
    test(`is what the model says: seed ${seed}`, async () => {
      const lanes = seeds > 20 ? undefined : [[1, 2, 4][seed % 3] as number]
      const failure = await failureOf(seed, records, lanes, { fails: true })
      if (failure !== undefined) assert.fail(`${titleOf(failure.setting)}:\n${failure.faults.join('\n')}`)
    })
  }

  test('is what the model says where some rows are told once per commit, and of others each update: seed 3', async () => {
    const failure = await failureOf(3, records / 2, [2], { folds: true, mixes: true })
    if (failure !== undefined) assert.fail(`${titleOf(failure.setting)}:\n${failure.faults.join('\n')}`)
  })
})
