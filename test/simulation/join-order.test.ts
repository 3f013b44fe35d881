import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hardlyAnyRoom, runJoin, takesWhatIsThere } from './join-order.ts'

const seeds = Number(process.env.SIM_JOIN_SEEDS ?? 150)

test(`${seeds} seeds: a join of what is there follows the order of time`, { timeout: 600_000 }, async () => {
  for (let seed = 1; seed <= seeds; seed++) assert.deepEqual(await runJoin(seed), [], `seed ${seed}`)
})

test('what waits leaves room for what it waits for', { timeout: 600_000 }, async () => {
  for (let seed = 1; seed <= 40; seed++) assert.deepEqual(await runJoin(seed, hardlyAnyRoom), [], `seed ${seed}`)
})

test('notices records that are taken before older ones are fetched', { timeout: 600_000 }, async () => {
  for (let seed = 1; seed <= 20; seed++) if ((await runJoin(seed, takesWhatIsThere)).length > 0) return
  assert.fail('unnoticed in 20 seeds')
})
