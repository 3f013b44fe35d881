import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isRepartition } from '../../../src/engine/group/topics.ts'
import { defineApp, EngineError, serdes } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

test('two branches of a split cannot have one name', () => {
  const app = defineApp({
    applicationId: 'split',
    build: (topology) => {
      topology.stream('in', { value: serdes.json<number>() }).split({ large: (n) => n > 10 }, { default: 'large' })
    },
  })
  assert.throws(
    () => new TopologyTestDriver(app),
    (error) => EngineError.is(error) && error.code === 'TOPOLOGY_INVALID' && error.message.includes("name 'large'"),
  )
})

test('topics between sub-topologies are known by their names, whatever version made them', () => {
  const between = [
    'app-KSTREAM-KEY-SELECT-0000000005-repartition',
    'app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic',
    'app-of-customers-subscription-response-topic',
  ]
  for (const topic of between) assert.ok(isRepartition(topic, 'app'), topic)
  for (const topic of ['app-input-topic', 'app-counts-changelog', 'other-x-repartition', 'x-repartition'])
    assert.ok(!isRepartition(topic, 'app'), topic)
})
