/** A commit that no call shows to wait for any broker: the answer is owed nevertheless. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BrokerNode } from '../../../src/broker/port.ts'
import { diagnose } from '../../../src/view/diagnosis/diagnose.ts'
import type { Facts } from '../../../src/view/diagnosis/facts.ts'
import type { Finding } from '../../../src/view/diagnosis/finding.ts'
import { healthy, now } from './facts.ts'

const node: BrokerNode = {
  id: 1,
  address: 'kafka-1:9092',
  connected: false,
  sinceMs: 0,
  lastError: 'it is gone',
  calls: [],
}

function unanswered(nodes: readonly BrokerNode[]): Finding | undefined {
  const commit = { ...healthy.commit, phase: 'IN_TX_COMMIT', phaseSinceMs: now - 7000 } as Facts['commit']
  return diagnose(now, { ...healthy, commit, broker: { ...healthy.broker, nodes } })[0]
}

test('the one broker that there is has a name in it', () => {
  const first = unanswered([{ ...node, id: null, address: 'broker:9092' }, node])
  assert.equal(first?.code, 'COMMIT_UNANSWERED')
  assert.match(first.sentence, /The one broker that this process has to do with is 1 at kafka-1:9092\./)
  assert.match(first.next, /^Look at the broker 1 at kafka-1:9092/)
  assert.deepEqual(first.place, { broker: 'kafka-1:9092' })
})

test('of several brokers none is named', () => {
  const first = unanswered([node, { ...node, id: 2, address: 'kafka-2:9092' }])
  assert.match(first?.sentence ?? '', /Which broker has to answer is not known; the addresses are broker:9092/)
})
