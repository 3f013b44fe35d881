/** The recorded scenarios on the test driver, one record after the other: what Kafka Streams gave, and stores as it left them. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { ScenarioBuilder } from '../../conformance/build.ts'
import { type Json, jsonOf } from '../../conformance/expr.ts'
import { runScenario } from '../../conformance/run.ts'
import type { ScenarioResult } from '../../conformance/scenario.ts'
import { defineApp } from '../../src/index.ts'
import { TopologyTestDriver } from '../../src/testing/index.ts'
import {
  contentOf,
  countsTimers,
  eligibleScenarios,
  type NamedStore,
  type Recorded,
  recordsOf,
} from './support/scenario-bundle.ts'
import { add, expected, type Outputs, sortedRows } from './support/scenario-results.ts'

/** Event time is that of all topics together: one that had its records must not hold it. */
const idlenessMs = 1

/** Kafka Streams gives each operator the time of what came through it; the engine has one watermark, and these show it. */
const haveOneTime = new Set([
  'cogroup/session',
  'cogroup/sliding',
  'cogroup/tumbling',
  'stream-stream-left/random-1',
  'stream-stream-left/random-2',
  'stream-stream-outer/grace',
  // The stream is a thousand milliseconds ahead of the table: what it asks for is no longer history.
  'versioned/as-of',
  'recorded/any-30',
  'recorded/any-170',
  'recorded/any-320',
  'recorded/any-420',
  'recorded/final-82',
  'recorded/final-432',
  'recorded/final-472',
  'recorded/final-512',
  'recorded/pipes-99',
  'recorded/tables-204',
  'recorded/window-111',
  'recorded/window-231',
  'recorded/window-281',
])

/** Another result is right as well. */
const leftOut = new Set([
  // The wall clock comes to each time at which a timer is due; that of Kafka Streams' driver leaps, and fires once.
  'punctuators/random-2',
  'punctuators/wall-clock',
  'recorded/procs-136',
  // They show the wall clock, which has to move here for a topic to turn idle.
  'recorded/any-360',
  'routing/meta',
  // A table that is joined with itself by a foreign key: which of its two sides a change comes to first is open.
  'recorded/fk-338',
])

type Result = Pick<ScenarioResult, 'output' | 'stores'>

const here = new URL('../conformance-streams/', import.meta.url)
const jsonIn = (path: string): unknown => JSON.parse(readFileSync(new URL(path, here), 'utf8'))
/** What the engine gives where Kafka Streams has an accident. */
const ownResults = jsonIn('baselines/own-results.json') as Readonly<Record<string, Result>>

const everyScenario: readonly Recorded[] = ['scenarios/', 'recorded/']
  .flatMap((folder) => readdirSync(new URL(folder, here)).map((file) => folder + file))
  .sort()
  .flatMap((path) => jsonIn(path) as readonly Recorded[])
  .filter((scenario) => !scenario.describeOnly && scenario.expect.error === undefined && !leftOut.has(scenario.name))

/** Several lanes are of interest where the order of the input alone says in which order all is read. */
const inOneOrder: ReadonlySet<string> = new Set(
  [false, true].flatMap((optimize) => eligibleScenarios(optimize)).map((scenario) => scenario.name),
)

async function wanted(scenario: Recorded): Promise<{ outputs: Outputs; stores: Record<string, string[]> }> {
  if (inOneOrder.has(scenario.name)) return expected({ scenario, index: 0, kinds: new Map(), lanes: 1, by: 0 })
  const own = haveOneTime.has(scenario.name) ? await runScenario(scenario, 'watermark') : ownResults[scenario.name]
  if (own === undefined) return expected({ scenario, index: 0, kinds: new Map(), lanes: 1, by: 0 })
  const outputs: Outputs = {}
  for (const { topic, key, value, timestamp, headers } of own.output ?? [])
    add(outputs, topic, key, { value: value ?? null, timestamp, headers: (headers ?? []) as Json }, 0)
  return { outputs, stores: sortedRows(own.stores ?? {}, 0) }
}

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
  const readsSeveral = new Set(recordsOf(scenario).map((record) => record.topic)).size > 1
  for (const item of scenario.input) {
    if ('advanceWallClockMs' in item) await driver.advanceWallClock(item.advanceWallClockMs)
    else await driver.input(item.topic).pipe(item.key, item.value, item as { timestamp: number })
    if (readsSeveral) await driver.advanceWallClock(idlenessMs)
  }
  const outputs: Outputs = {}
  for (const { topic, key, value, timestamp, headers } of driver.readAllOutputs()) {
    add(outputs, topic, jsonOf(key), { value: (value ?? null) as Json, timestamp, headers: headers as never }, 0)
  }
  const want = await wanted(scenario)
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
  for (const lanes of [1, 3]) {
    const all = everyScenario.filter(({ name }) => lanes === 1 || (inOneOrder.has(name) && !countsTimers.has(name)))
    test(`give what Kafka Streams gave, or what is documented instead, ${lanes} lanes`, async () => {
      const wrong: string[] = []
      for (const scenario of all) {
        const found = await difference(scenario, lanes)
        if (found !== undefined) wrong.push(found)
      }
      assert.deepEqual(wrong, [], `${wrong.length} of ${all.length}`)
    })
  }
})
