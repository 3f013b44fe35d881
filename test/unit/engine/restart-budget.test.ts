import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RestartBudget } from '../../../src/engine/recovery/restart-budget.ts'

test('the causes of restarts are told with the newest first, as long as they count', () => {
  const budget = new RestartBudget(3, 10_000)
  budget.take('the first', 0, 0, 'BARRIER_TIMEOUT')
  budget.take('the second', 4000, 1)
  const causes = ['the second', 'the first']
  assert.deepEqual(budget.snapshot(5000), {
    ...{ used: 2, max: 3, windowMs: 10_000, causes },
    codes: ['OTHER', 'BARRIER_TIMEOUT'],
  })
  assert.deepEqual(budget.snapshot(12_000).causes, ['the second'])
})

test('a restart that takes nothing of the budget is told with the others', () => {
  const budget = new RestartBudget(3, 10_000)
  budget.take('a disk that fails', 0, 0)
  budget.note('the broker was away', 1000, 'TRANSACTION_ABORTED')
  const { used, causes, codes } = budget.snapshot(2000)
  assert.deepEqual(
    [used, causes, codes],
    [1, ['the broker was away', 'a disk that fails'], ['TRANSACTION_ABORTED', 'OTHER']],
  )
  assert.deepEqual(budget.snapshot(10_500).causes, ['the broker was away'])
})

test('the wait before an attempt grows, but not without end', () => {
  const budget = new RestartBudget(100, 60_000)
  const waits = Array.from({ length: 40 }, (_, i) => {
    budget.take('a disk that fails', i, i)
    return budget.backoffMs()
  })
  assert.deepEqual(waits.slice(0, 5), [0, 1000, 4000, 10_000, 10_000])
  assert.equal(Math.max(...waits), 10_000)
})
