/**
 * A rolling update to a version that reads one topic more for the same sums. The oldest process leads the group, as the first pod
 * of a set does that is replaced from its end, and knows nothing of what belongs together now.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import { Random } from '../../src/base/random.ts'
import { firstTime, lastByKey, produce, TestEngine } from './support/engine.ts'

const partitions = 5
const keys = 40

for (const named of [false, true]) {
  test(`a source that a new version adds goes with those beside it, ${named ? 'of processes with places' : 'of any processes'}`, async (t) => {
    const broker = await startEmbeddedBroker({ partitions })
    t.after(() => broker.close())
    const client = broker.client()
    await client.createTopics(['one', 'two', 'told'].map((topic) => ({ topic, partitions })))
    const started = (version: string, id: string): Promise<TestEngine> =>
      TestEngine.start(
        t,
        version,
        {
          'broker.embedded.partitions': partitions,
          'topology.sub-topology-split': 'repartition-topics',
          'consumer.session.timeout.ms': 60_000,
          ...(named && { 'engine.instance-id': id }),
        },
        broker,
      )
    const ids = ['a', 'b', 'c']
    const running = new Map<string, TestEngine>()
    for (const id of ids) {
      const engine = await started('sums-of-one', id)
      await engine.reaches('RUNNING')
      running.set(id, engine)
    }
    const random = new Random(7)
    const expected: Record<string, number> = {}
    let feeds = true
    const feed = (async () => {
      for (let at = 0; feeds; at++) {
        for (const topic of ['one', 'two']) {
          const records = Array.from({ length: 20 }, (_, i) => {
            const key = `k${random.int(keys)}`
            expected[key] = (expected[key] ?? 0) + 1
            return { key, value: 1, timestamp: firstTime + at * 100 + i }
          })
          await produce(client, topic, records, partitions)
        }
        await sleep(10)
      }
    })()
    for (const id of ids.toReversed()) {
      await running.get(id)?.stop()
      const engine = await started('sums-of-two', id)
      await engine.reaches('RUNNING')
      running.set(id, engine)
      await sleep(700)
    }
    feeds = false
    await feed
    await Promise.all([...running.values()].map((engine) => engine.idle()))
    const told = lastByKey<number>(await (running.get('a') as TestEngine).read('told'))
    assert.deepEqual(told, expected)
  })
}
