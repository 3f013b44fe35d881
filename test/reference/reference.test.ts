/**
 * Random programs on the running engine against the reference model. REFERENCE_SEEDS: how many; REFERENCE_FROM: the
 * first seed; REFERENCE_FOLDED: how many are run with tables told once per commit; REFERENCE_WINDOWED_SEEDS: how
 * many of programs that join tables by window; REFERENCE_RECORDS: how long the input
 * is, 10,000 where there is time; REFERENCE_SPLIT=repartition-topics: through topics; REFERENCE_OPTIMIZED=1: optimized. A
 * seed that fails is replayed, and made smaller, by `node test/reference/replay.ts`.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { examples } from './examples.ts'
import { expectedBehindTopic, expectedOf } from './results.ts'
import { failureOf, faultsOf, titleOf } from './seed.ts'

const seeds = Number(process.env.REFERENCE_SEEDS ?? 3)
const from = Number(process.env.REFERENCE_FROM ?? 1)
/** Few of them once more with tables that tell each changed row once per commit. */
const folded = Number(process.env.REFERENCE_FOLDED ?? 2)
const windowed = Number(process.env.REFERENCE_WINDOWED_SEEDS ?? 6)
const records = Number(process.env.REFERENCE_RECORDS ?? 3000)

const seedsOf = (count: number, folds: boolean): Array<readonly [seed: number, folds: boolean]> =>
  Array.from({ length: count }, (_, i) => [from + i, folds] as const)

describe('what records become on several levels', () => {
  for (const [name, make] of Object.entries(examples)) {
    for (const slow of [false, true]) {
      test(`is what the model says: ${name}${slow ? ', with a slow function' : ''}`, async () => {
        const program = make(1, slow ? 500 : 3000, slow)
        const setting = { lanes: 4, store: slow ? 'memory' : 'lmdb', commitMs: 20 } as const
        assert.deepEqual(await faultsOf(program, setting, expectedOf(program)), [])
      })
    }
  }

  test('is what the model says where timers are due while a task waits for a slow function at a barrier', async () => {
    const program = examples.visitsByProduct(1, 1500, true)
    const setting = { lanes: 2, store: 'memory', commitMs: 5 } as const
    assert.deepEqual(await faultsOf(program, setting, expectedOf(program)), [])
  })

  for (const processes of [1, 2]) {
    test(`is what the model says: quietProducts, timers behind topics, ${processes} processes`, async () => {
      const program = examples.quietProducts(1, 2000, false)
      const setting = { lanes: 2, store: 'memory', commitMs: 20, split: 'repartition-topics', processes } as const
      assert.deepEqual(await faultsOf(program, setting, expectedBehindTopic(program)), [])
    })
  }

  for (const [name, processes] of [
    ['pricedOrders', 1],
    ['pricedOrders', 2],
    ['pairsInWindows', 1],
    ['pairsInWindows', 2],
  ] as const) {
    test(`is what the model says: ${name}, through topics, ${processes} processes`, async () => {
      const program = examples[name](1, 2000, false)
      const setting = { lanes: 2, store: 'memory', commitMs: 20, split: 'repartition-topics', processes } as const
      assert.deepEqual(await faultsOf(program, setting, expectedOf(program)), [])
    })
  }

  for (let seed = 1; seed <= windowed; seed++) {
    test(`is what the model says where tables by window are joined: seed ${seed}`, async () => {
      const failure = await failureOf(seed, records, [[1, 2, 4][seed % 3] as number], { windowed: true })
      if (failure === undefined) return
      const { setting, faults } = failure
      const again = `REFERENCE_WINDOWED=1 node test/reference/sweep.ts ${seed}`
      assert.fail(`${titleOf(setting)}:\n${faults.join('\n')}\n${again}`)
    })
  }

  // Results of the outer join come long after records of their time, or with a deadline that is over when they are made.
  for (const seed of [30291, 30454]) {
    test(`is what the model says where what an outer join tells is joined again: seed ${seed}`, async () => {
      const failure = await failureOf(seed, 3000, [2])
      assert.deepEqual(failure?.faults ?? [], [])
    })
  }

  for (const [seed, folds] of [...seedsOf(seeds, false), ...seedsOf(folded, true)]) {
    test(`is what the model says: seed ${seed}${folds ? ', told once per commit' : ''}`, async () => {
      // Few seeds each take another number of lanes, many take all.
      const lanes = seeds > 20 ? undefined : [[1, 2, 4][seed % 3] as number]
      const failure = await failureOf(seed, folds ? records / 3 : records, lanes, { folds })
      if (failure === undefined) return
      const { setting, faults } = failure
      assert.fail(
        `${titleOf(setting)}:\n${faults.join('\n')}\nnode test/reference/replay.ts ${seed} ${records} ${setting.lanes}`,
      )
    })
  }
})
