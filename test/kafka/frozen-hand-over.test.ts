/** A real Kafka that stands still just behind a hand-over: the pod that gave the role up says so wherever it is asked. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import type { HaStatus } from '../../src/http/ha-seam.ts'
import { TestEngine } from '../engine/support/engine.ts'
import { web, why } from '../engine/support/why.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { eventually } from '../support/millrace.ts'

const kafka = await kafkaForTests({ own: true })
const skip = 'skip' in kafka ? kafka.skip : false
const servers = 'skip' in kafka ? '' : kafka.bootstrap

const statusOf = (pod: TestEngine): HaStatus | null => pod.runtime.ha?.status() ?? null
const haStateOf = (pod: TestEngine): string | undefined => statusOf(pod)?.selfState
const probe = async (pod: TestEngine, name: string) => await fetch(`${pod.runtime.url}/health/${name}`)

describe('a Kafka that stands still behind a hand-over', { skip }, () => {
  before(async () => {
    const broker = await connectKafka({ bootstrapServers: [servers], clientId: 'test' })
    await broker.createTopics(['numbers', 'seen', 'sums'].map((topic) => ({ topic, partitions: 2 })))
    await broker.close()
  })
  after(async () => {
    if (!('skip' in kafka)) await kafka.stop()
  })

  test('leaves a pod that neither runs nor is ready, and does not say that records flow', async (t) => {
    const broker = 'skip' in kafka ? undefined : kafka.broker
    const start = (id: string): Promise<TestEngine> =>
      TestEngine.start(t, 'running-sum', {
        ...web,
        'broker.bootstrap-servers': servers,
        'ha.mode': 'hot-standby',
        'ha.pod-id': id,
        'ha.heartbeat-interval': 300,
        'ha.failover-timeout': 6000,
        'engine.state.store': 'memory',
      })
    const [from, to] = [await start('pod-a'), await start('pod-b')]
    await from.reaches('RUNNING')
    await eventually('the other one is ready', () => statusOf(from)?.readyStandbyCount === 1)
    assert.equal((await probe(from, 'ready')).status, 200)
    assert.equal((await fetch(`${from.runtime.url}/ha/switch`, { method: 'POST' })).status, 202)
    // No moment is left out: its coordinator lives on this thread.
    while (statusOf(from)?.selfRole !== 'STANDBY') await turn()
    broker?.pause()
    try {
      assert.equal(haStateOf(from), 'CATCHING_UP')
      const { current } = (await (await fetch(`${from.runtime.url}/state`)).json()) as { current: string }
      assert.equal(current, 'STANDBY')
      const ready = await probe(from, 'ready')
      assert.equal(ready.status, 503)
      assert.match(await ready.text(), /not ready: engine is STANDBY \(CATCHING_UP\)/)
      assert.equal((await probe(from, 'active')).status, 503)
      assert.equal((await probe(from, 'live')).status, 200)
      const { status, verdict } = await why(from)
      assert.equal(status, 'NOT_MEANT_TO_RUN')
      assert.match(verdict, /^This process \(pod pod-a\) has been a standby .*could not take over now/)
    } finally {
      broker?.resume()
    }
    await eventually('it is a ready standby', () => haStateOf(from) === 'READY_STANDBY', 90_000)
    assert.equal((await probe(from, 'ready')).status, 200)
    await eventually('the other one is active', () => haStateOf(to) === 'ACTIVE' && to.state === 'RUNNING')
  })
})
