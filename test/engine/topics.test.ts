/** Producing and reading in code, on the embedded broker. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { serdes } from 'millrace'
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

  test('large records and headers come through, each of which the topic takes; one that it does not take is named', async () => {
    const texts = { key: serdes.string, value: serdes.string }
    const headers = Array.from({ length: 2000 }, (_, i) => [`name-${i}`, 'x'.repeat(20)] as const)
    const sizes = [450_000, 600_000, 1_000_000, 500_000, ...Array.from({ length: 40 }, () => 10)]
    const records = sizes.map((size) => ({ key: 'a', value: 'x'.repeat(size), ...(size === 10 && { headers }) }))
    assert.equal(await runtime.produce('large', records, texts), records.length)
    const read: number[] = []
    for await (const { value } of runtime.read('large', { ...texts, until: 'end' })) read.push(value?.length ?? -1)
    assert.deepEqual(read, sizes)
    await assert.rejects(runtime.produce('large', [records[4]!, { key: 'a', value: 'x'.repeat(2 ** 20) }], texts), {
      code: 'USAGE',
      message: /^Record 1 \(from 0\) for the topic large takes 10\d+ bytes, and the topic takes at most 1048588/,
    })
  })

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
