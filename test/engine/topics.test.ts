/** Producing and reading in code, on the embedded broker. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Runtime, startRuntime } from 'millrace/runtime'
import { topicsSuite } from '../support/topics-suite.ts'
import { appFile } from './support/engine.ts'

const settings = { 'runtime.http.enabled': false, 'engine.lanes.count': 2, 'broker.embedded.partitions': 4 }

function start(application: string, more: Readonly<Record<string, unknown>> = {}): Promise<Runtime> {
  return startRuntime({ application: appFile(application), config: { ...settings, ...more }, log: () => undefined })
}

describe('producing and reading in code', () => {
  let runtime: Runtime

  before(async () => {
    runtime = await start('running-sum')
  })
  after(() => runtime.stop())

  topicsSuite(() => runtime)

  test('a reader ends with the runtime', async () => {
    const own = await start('running-sum')
    const reading = (async () => {
      let count = 0
      for await (const _ of own.read('sums')) count++
      return count
    })()
    await own.produce('numbers', [{ key: 'a', value: 1 }])
    await own.untilIdle()
    await own.stop()
    assert.ok((await reading) <= 1)
  })

  test('records go through the schema registry of the application', async () => {
    const own = await start('avro-orders', { 'schema-registry.url': 'embedded' })
    try {
      const order = { id: 7, amount: 5 }
      await own.produce('orders', [{ key: 'ann', value: order }])
      for await (const { value } of own.read('orders', { until: 'end' })) assert.deepEqual(value, order)
    } finally {
      await own.stop()
    }
  })
})
