/** Windows that close in quiet, of a source whose records come out of order, while a silent partition keeps event time unknown. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineApp, serdes, tumbling } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

const json = { key: serdes.string, value: serdes.json<number>() }

const app = (isReKeyed: boolean) =>
  defineApp({
    applicationId: 'quiet-disorder',
    build(topology) {
      const input = topology.stream('in', { ...json, watermark: { maxOutOfOrderness: '5s' } })
      const grouped = isReKeyed ? input.groupBy((_, key) => `${key}!`, json) : input.groupByKey(json)
      grouped
        .windowedBy(tumbling('1s', { closeAfterIdle: '3s' }), { emit: 'on-close' })
        .count()
        .toStream()
        .map((count, { key, start }) => [`${key}@${start}`, count])
        .to('out', json)
    },
  })

for (const isReKeyed of [false, true]) {
  for (const split of ['in-process', 'repartition-topics'] as const) {
    for (const partitions of [1, 2]) {
      const where = `${isReKeyed ? 'behind a change of key, ' : ''}${split}, ${partitions} partitions`
      test(`take what is no more out of order than it may be: ${where}`, async () => {
        const config = { 'topology.sub-topology-split': split }
        const driver = new TopologyTestDriver(app(isReKeyed), { config, topics: { in: { partitions } } })
        const input = driver.input('in', json)
        await input.pipe('k', 1, { timestamp: 100_000 })
        for (let second = 0; second < 4; second++) await driver.advanceWallClock('1s')
        await input.pipe('k', 2, { timestamp: 100_500 })
        await input.pipe('k', 3, { timestamp: 101_500 })
        for (let second = 0; second < 20; second++) await driver.advanceWallClock('1s')
        assert.deepEqual(driver.dropped(), [])
        const name = isReKeyed ? 'k!' : 'k'
        const told = driver.output('out', json).readAll()
        assert.deepEqual(
          told.map(({ key, value }) => [key, value]),
          [
            [`${name}@100000`, 2],
            [`${name}@101000`, 1],
          ],
        )
        await driver.close()
      })
    }
  }
}
