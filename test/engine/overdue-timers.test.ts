/** With several lanes, and killed on the way, timers that are overdue when they are asked for fire where they would in one lane. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import { endsOf, expected, stepsOf, toldByKey } from '../support/overdue-timers.ts'
import { produce, TestEngine } from './support/engine.ts'

const partitions = 4
const steps = stepsOf(1, 20_000, partitions)
const feed = [...steps, ...endsOf(steps, partitions)]
const model = expected([feed], partitions, {})

for (const { lanes, kills } of [
  { lanes: 1, kills: 0 },
  { lanes: 4, kills: 0 },
  { lanes: 2, kills: 3 },
]) {
  test(`overdue timers beside a function fire as one lane would have them, ${lanes} lanes, ${kills} kills`, async (t) => {
    const broker = await startEmbeddedBroker({ partitions })
    t.after(() => broker.close())
    await produce(
      broker.client(),
      'steps',
      feed.map(({ key, n, timestamp, partition }) => ({ key, value: n, timestamp, partition })),
      partitions,
    )
    const config = { 'broker.embedded.partitions': partitions, 'engine.lanes.count': lanes }
    for (let i = 0; i < kills; i++) {
      const killed = await TestEngine.open('overdue-timers', config, broker)
      await sleep(250 + 100 * i)
      await killed.runtime.kill()
    }
    const engine = await TestEngine.start(t, 'overdue-timers', config, broker)
    await engine.idle()
    assert.deepEqual(toldByKey(await engine.read('told')), model)
  })
}
