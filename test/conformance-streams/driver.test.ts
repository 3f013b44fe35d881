/** The recorded scenarios on the test driver, one record after the other: what Kafka Streams gave, and stores as it left them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ScenarioBuilder } from '../../conformance/build.ts'
import { type Json, jsonOf } from '../../conformance/expr.ts'
import { defineApp } from '../../src/index.ts'
import { TopologyTestDriver } from '../../src/testing/index.ts'
import {
  contentOf,
  countsTimers,
  eligibleScenarios,
  type NamedStore,
  type Recorded,
  recordsOf,
  turnsWallClock,
} from '../engine/support/scenario-bundle.ts'
import { add, expected, type Outputs, sortedRows } from '../engine/support/scenario-results.ts'

/** Event time is that of all topics together: one that had its records must not hold it. */
const idlenessMs = 1

async function difference(scenario: Recorded, lanes: number): Promise<string | undefined> {
  let kinds: ReadonlyMap<string, NamedStore> = new Map()
  const app = defineApp({
    applicationId: 'conformance',
    build(topology) {
      const builder = new ScenarioBuilder(scenario)
      builder.build(topology)
      kinds = builder.stores
    },
  })
  const driver = new TopologyTestDriver(app, {
    lanes,
    config: {
      'watermark.idleness-timeout': idlenessMs,
      ...(scenario.optimize && { 'topology.optimization': 'all' }),
    },
  })
  for (const item of scenario.input) {
    if ('advanceWallClockMs' in item) await driver.advanceWallClock(item.advanceWallClockMs)
    else await driver.input(item.topic).pipe(item.key, item.value, item as { timestamp: number })
    await driver.advanceWallClock(idlenessMs)
  }
  const outputs: Outputs = {}
  for (const { topic, key, value, timestamp, headers } of driver.readAllOutputs()) {
    add(outputs, topic, jsonOf(key), { value: (value ?? null) as Json, timestamp, headers: headers as never }, 0)
  }
  const want = await expected({ scenario, index: 0, kinds, lanes, by: 0 })
  const times = recordsOf(scenario).map((record) => record.timestamp)
  const stores: Record<string, Json[]> = {}
  for (const [store, how] of kinds) stores[store] = contentOf(driver.store(store), how, times)
  driver.close()
  try {
    assert.deepEqual(outputs, want.outputs)
    assert.deepEqual(sortedRows(stores, 0), want.stores)
  } catch (error) {
    return `${scenario.name}: ${(error as Error).message}`
  }
}

describe('the recorded scenarios on the test driver', () => {
  const all = [false, true].flatMap((optimize) => eligibleScenarios(optimize)).filter((s) => !turnsWallClock(s))

  for (const lanes of [1, 3]) {
    test(`give what Kafka Streams gave, ${lanes} lanes`, async () => {
      const wrong: string[] = []
      for (const scenario of all) {
        if (lanes > 1 && countsTimers.has(scenario.name)) continue
        const found = await difference(scenario, lanes)
        if (found !== undefined) wrong.push(found)
      }
      assert.deepEqual(wrong, [], `${wrong.length} of ${all.length}`)
    })
  }
})
