/** Who has the identity of a process, as the group tells it, which may be late. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../src/base/clock.ts'
import type { PlaceHolder } from '../../../src/engine/recovery/broker-questions.ts'
import { AskedBroker } from '../../../src/runtime/why/asked-broker.ts'
import { Identity } from '../../../src/runtime/why/identity.ts'
import { eventually } from '../../support/millrace.ts'

const own: PlaceHolder = { memberId: 'own', client: 'app', host: 'here' }

/** Answers questions for the place in turn, with the last answer from then on. */
function answering(answers: ReadonlyArray<PlaceHolder | null>): { broker: AskedBroker; asked: () => number } {
  let count = 0
  const broker: AskedBroker = new AskedBroker((id) => {
    const answer = answers[Math.min(count++, answers.length - 1)] as PlaceHolder | null
    setImmediate(() => broker.answered(id, answer))
  })
  return { broker, asked: () => count }
}

test('a fenced process is not told as the one that fenced it: who took the identity may take the place later', async () => {
  const joining = { memberId: 'other', client: null, host: null }
  const { broker } = answering([null, own, null, joining, { ...joining, client: 'app', host: 'there' }])
  const identity = new Identity('app', 'app-main', systemClock)
  identity.begin(broker, () => 'own')
  const holders = new Set<string | null>()
  identity.fenced(systemClock.now() + 60_000, 'own')
  await eventually('the other one is told', () => {
    holders.add(identity.facts().holder)
    return holders.size > 2
  })
  assert.deepEqual([...holders], [null, 'a process (member other)', 'the client app on there (member other)'])
})

test('nobody is asked any more when the process has ended', async () => {
  const { broker, asked } = answering([null, own])
  const identity = new Identity('app', 'app-main', systemClock)
  identity.begin(broker, () => 'own')
  identity.fenced(systemClock.now(), 'own')
  await new Promise((done) => setTimeout(done, 1200))
  assert.equal(identity.facts().holder, null)
  assert.equal(asked(), 2)
})
