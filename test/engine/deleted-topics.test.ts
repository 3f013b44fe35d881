/** Topics that the application writes, deleted while it runs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BrokerError, type ProduceRequest } from '../../src/broker/port.ts'
import { defineApp, serdes } from '../../src/index.ts'
import type { Tamper } from '../simulation/faulty-broker.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

const application = () =>
  defineApp({
    applicationId: 'sim',
    build: (topology) =>
      topology
        .stream('in', { key: serdes.string, value: serdes.json<number>() })
        .groupByKey()
        .count({ store: 'kept' })
        .toStream()
        .to('out'),
  })

for (const topic of ['out', 'sim-kept-changelog'])
  test(`${topic}, deleted while the application writes it, is told as a topic that is missing`, async () => {
    let isGone = false
    // As Kafka answers, which makes no topic where one is written to.
    const tamper: Tamper = async (name, args, call) => {
      const asked = name === 'produce' ? (args[0] as ProduceRequest).batches : []
      if (!isGone || !asked.some((each) => each.topic === topic)) return await call(args)
      throw new BrokerError('UNKNOWN_TOPIC_OR_PARTITION', `Kafka refused producing to ${topic}:0: it is not there.`)
    }
    const engine = new VirtualEngine({ compile: () => application().compile(), tamper })
    await engine.start()
    await engine.runs()
    await engine.put('in', [{ key: 'a', value: 1, timestamp: 1_000_000 }])
    await engine.settled()
    isGone = true
    await engine.put('in', [{ key: 'a', value: 2, timestamp: 1_000_001 }])
    await engine.until('it has failed', () => engine.count('failed') > 0)
    const failed = engine.facts.find((fact) => fact.type === 'failed')
    assert.equal(failed?.error.code, 'TOPIC_MISSING', failed?.error.message)
    assert.ok(failed.error.message.includes(topic), failed.error.message)
  })
