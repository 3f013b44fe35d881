/** Runs a file of scenarios through the engine and prints their results as one JSON array. */
import { readFileSync } from 'node:fs'
import { defineApp } from '../src/index.ts'
import type {
  SessionStore,
  TimestampedKeyValueStore,
  VersionedStore,
  WindowStore,
  KeyValueStore,
} from '../src/index.ts'
import type { AnyStore } from '../src/state/contract.ts'
import { type ReferenceOptions, ReferenceDriver } from './reference/reference-driver.ts'
import { type NamedStore, ScenarioBuilder } from './build.ts'
import { type Json, jsonOf } from './expr.ts'
import type { Scenario, ScenarioInput, ScenarioOutput, ScenarioResult } from './scenario.ts'

type DriverTime = NonNullable<ReferenceOptions['time']>

/**
 * Runs one scenario; what the engine refuses is its result too. `time` as for the driver: Kafka Streams' by default, to be
 * compared with its results; `watermark` gives the engine's own.
 */
export async function runScenario(scenario: Scenario, time: DriverTime = 'kafka-streams'): Promise<ScenarioResult> {
  const { name } = scenario
  try {
    return await results(scenario, time)
  } catch (error) {
    return { name, error: error instanceof Error ? error.message : String(error) }
  }
}

async function results(scenario: Scenario, time: DriverTime): Promise<ScenarioResult> {
  const { name } = scenario
  let builder: ScenarioBuilder | undefined
  const app = defineApp({
    applicationId: 'conformance',
    build(topology) {
      builder = new ScenarioBuilder(scenario)
      builder.build(topology)
    },
  })
  const driver = new ReferenceDriver(app, {
    time,
    config: scenario.optimize ? { 'topology.optimization': 'all' } : {},
  })
  const describe = driver.describe()
  if (scenario.describeOnly) return { name, describe }
  const output: ScenarioOutput[] = []
  for (const [step, input] of (scenario.input ?? []).entries()) {
    await feed(driver, input)
    for (const record of driver.readAllOutputs()) {
      const { topic, timestamp, headers } = record
      const shown = headers.length === 0 ? {} : { headers: headers as ReadonlyArray<readonly [string, string]> }
      output.push({ step, topic, key: jsonOf(record.key), value: (record.value ?? null) as Json, timestamp, ...shown })
    }
  }
  const times = (scenario.input ?? []).flatMap((input) => ('timestamp' in input ? [input.timestamp] : []))
  const stores: Record<string, Json[]> = {}
  for (const [store, how] of builder?.stores ?? []) stores[store] = contentOf(driver.store(store), how, times)
  return { name, output, stores, describe }
}

async function feed(driver: ReferenceDriver, input: ScenarioInput): Promise<void> {
  if ('advanceWallClockMs' in input) return driver.advanceWallClock(input.advanceWallClockMs)
  const { topic, key, value, timestamp, headers } = input
  await driver.input(topic).pipe(key, value, { timestamp, headers: headers ?? [] })
}

/** What a store holds, in the form of the scenarios. */
export function contentOf(store: AnyStore, how: NamedStore, times: readonly number[]): Json[] {
  const end = how.end ?? ((start: number) => start)
  switch (how.kind) {
    case 'rows':
      return [...(store as TimestampedKeyValueStore<Json, Json>).all()].map(([key, row]) => [
        jsonOf(key),
        row.value,
        row.timestamp,
      ])
    case 'values':
      return [...(store as KeyValueStore<Json, Json>).all()].map(([key, value]) => [jsonOf(key), value])
    case 'windows':
      return [...(store as WindowStore<Json, Json>).all()].map(([key, start, row]) => [
        { key, start, end: end(start) },
        row.value,
        row.timestamp,
      ])
    case 'history':
      return [...(store as WindowStore<Json, Json>).all()].map(([key, start, row]) => [
        { key, start, end: end(start) },
        row.value,
      ])
    case 'sessions':
      return [...(store as SessionStore<Json, Json>).all()].map(([key, start, to, value]) => [
        { key, start, end: to },
        value,
      ])
    default:
      return versionsOf(store as VersionedStore<Json, Json>, times)
  }
}

/** The keys of all scenarios: one that is deleted is in no list. */
const letters = Array.from({ length: 26 }, (_, i) => String.fromCharCode(97 + i))

/** The versions that a look-up at one of the times, or without a time, finds. */
function versionsOf(store: VersionedStore<Json, Json>, times: readonly number[]): Json[] {
  const found = new Map<string, Json>()
  const keys = new Set([...letters, ...[...store.all()].map(([key]) => key)])
  for (const key of keys) {
    for (const asOf of [...times, undefined]) {
      const version = store.get(key, asOf)
      if (version) found.set(`${JSON.stringify(key)}@${version.validFrom}`, [key, version.value, version.validFrom])
    }
  }
  return [...found.values()]
}

if (process.argv[1] && import.meta.url === new URL(`file://${process.argv[1]}`).href) {
  const file = process.argv[2]
  if (file === undefined) {
    process.stderr.write('usage: run.ts <scenario-file>\n')
    process.exit(2)
  }
  const scenarios = JSON.parse(readFileSync(file, 'utf8')) as readonly Scenario[]
  const all: ScenarioResult[] = []
  for (const scenario of scenarios) all.push(await runScenario(scenario))
  process.stdout.write(`${JSON.stringify(all)}\n`)
}
