import { test } from 'node:test'
import {
  believesWhatWasKnown,
  doubtsNothingThatHasMore,
  hardlyAnyRoom,
  takesAnswersForOneMoment,
  takesWhatIsThere,
} from './join-order.ts'
import { Seeds, upTo } from './seeds.ts'

const simulator = new Seeds(new URL('join-order.ts', import.meta.url))
const seeds = Number(process.env.SIM_JOIN_SEEDS ?? 150)
const replay = 'SIM_JOIN_SEEDS=… node --test test/simulation/join-order.test.ts, which stops at'

test(`${seeds} seeds: a join of what is there follows the order of time`, { timeout: 600_000 }, async (t) => {
  await simulator.allHold(t, { seeds: upTo(seeds) }, replay)
})

test('what waits leaves room for what it waits for', { timeout: 600_000 }, async (t) => {
  await simulator.allHold(t, { seeds: upTo(40), mutant: hardlyAnyRoom.name }, replay)
})

test('notices records that are taken before older ones are fetched', { timeout: 600_000 }, async (t) => {
  await simulator.notice(t, takesWhatIsThere.name, 20)
})

test('notices rows that came behind what was known of their partition', { timeout: 600_000 }, async (t) => {
  await simulator.notice(t, believesWhatWasKnown.name, 300)
})

test('notices rows that came while an answer was read', { timeout: 600_000 }, async (t) => {
  await simulator.notice(t, takesAnswersForOneMoment.name, 1500)
})

test('notices answers that were under way for long', { timeout: 600_000 }, async (t) => {
  await simulator.notice(t, doubtsNothingThatHasMore.name, 1500)
})
