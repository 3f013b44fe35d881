/**
 * Scenarios recorded with the cache of Kafka Streams 4.1.1 on, and a commit where the input says so: what a table tells
 * once per commit is what that cache gives, with its times and headers.
 *
 * Its test driver commits behind every record, so the cache never holds two updates of a key there. The recordings took the
 * driver's task, and did the driver's steps without that commit. At a commit the caches are flushed; what the flush sends
 * through repartition topics is processed and flushed too, until nothing is left. Stores were in memory.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { ScenarioBuilder } from '../../conformance/build.ts'
import { canonical, type Json, jsonOf } from '../../conformance/expr.ts'
import type { Scenario, ScenarioInput, ScenarioOutput } from '../../conformance/scenario.ts'
import { defineApp } from '../../src/index.ts'
import { TopologyTestDriver } from '../../src/testing/index.ts'
import { contentOf, type NamedStore } from './support/scenario-bundle.ts'

type Item = ScenarioInput | { readonly commit: true }

/** Where the engine does something else on purpose; decision 36 has the reasons. */
type Difference =
  /** A joined row has the headers of its newest update; there, of whichever side is flushed last. */
  | 'join-headers'
  /** Tables that are joined are not folded. */
  | 'told-each'
  /** So a partner that comes and goes within one commit moves the time of a joined row. */
  | 'partner-came'
  /** Of a pair whose rows go in one commit the end is told; there, it never is. */
  | 'lost-delete'
  /** Rows are told in the order in which they changed first; there, in which they changed last. */
  | 'order-of-keys'

interface Recorded extends Omit<Scenario, 'input'> {
  readonly tags?: readonly [Difference]
  readonly input: readonly Item[]
  readonly expect: Result
}

interface Result {
  readonly output: readonly ScenarioOutput[]
  readonly stores: Readonly<Record<string, readonly Json[]>>
}

/** Event time is that of all topics together: one that had its records must not hold it. */
const idlenessMs = 1

async function resultOf(scenario: Recorded, lanes: number): Promise<Result> {
  let kinds: ReadonlyMap<string, NamedStore> = new Map()
  const app = defineApp({
    applicationId: 'per-commit',
    build(topology) {
      const builder = new ScenarioBuilder(scenario as unknown as Scenario)
      builder.build(topology)
      kinds = builder.stores
    },
  })
  const driver = new TopologyTestDriver(app, {
    lanes,
    commits: 'interval',
    config: {
      'topology.emit': 'per-commit',
      'watermark.idleness-timeout': idlenessMs,
      'commit-barrier.interval-ms': 8000,
      'commit-barrier.idle-interval-ms': 8000,
    },
  })
  // The first commit is not waited for by the clock; from here on they come when they are asked for.
  await driver.commit()
  const output: ScenarioOutput[] = []
  for (const [step, item] of scenario.input.entries()) {
    if ('commit' in item) await driver.commit()
    else if ('topic' in item) await driver.input(item.topic).pipe(item.key, item.value, item)
    await driver.advanceWallClock(idlenessMs)
    for (const { topic, key, value, timestamp, headers } of driver.readAllOutputs()) {
      output.push({
        step,
        topic,
        key: jsonOf(key),
        value: (value ?? null) as Json,
        timestamp,
        headers: headers as never,
      })
    }
  }
  const times = scenario.input.flatMap((item) => ('timestamp' in item ? [item.timestamp] : []))
  const stores: Record<string, Json[]> = {}
  for (const [store, how] of kinds) stores[store] = contentOf(driver.store(store), how, times)
  driver.close()
  return { output, stores }
}

/** What is told without being folded goes out with the commit that follows. */
function committedAt(scenario: Recorded, step: number): number {
  return scenario.input.findIndex((item, i) => i >= step && 'commit' in item)
}

interface Told {
  readonly commit: number
  readonly value: Json
  readonly timestamp: number
  readonly headers: Json
}

/** By topic and key, in order: within one commit keys may come in any. */
function byKey(scenario: Recorded, { output }: Pick<Result, 'output'>): Map<string, Told[]> {
  const found = new Map<string, Told[]>()
  for (const { step, topic, key, value, timestamp, headers = [] } of output) {
    const id = `${topic} ${canonical(key)}`
    const told = { commit: committedAt(scenario, step), value: value ?? null, timestamp, headers: headers as never }
    found.set(id, [...(found.get(id) ?? []), told])
  }
  return found
}

const shown = (told: ReadonlyMap<string, readonly Told[]>): Record<string, string[]> =>
  Object.fromEntries([...told].map(([id, list]) => [id, list.map((each) => canonical(each as unknown as Json))]))

const sorted = (stores: Result['stores']): Record<string, string[]> =>
  Object.fromEntries(Object.entries(stores).map(([name, rows]) => [name, rows.map(canonical).sort()]))

const withoutTime = (list: readonly Told[]): Told[] => list.map((each) => ({ ...each, timestamp: 0 }))
const withoutTimes = (stores: Result['stores']): Result['stores'] =>
  Object.fromEntries(
    Object.entries(stores).map(([name, rows]) => [name, rows.map((row) => (row as readonly Json[]).slice(0, 2))]),
  )

const withoutHeaders = (list: readonly Told[]): Told[] => list.map((each) => ({ ...each, headers: [] }))

/** Of each commit the last one; a deletion of what was not there says nothing. */
function lastOfCommits(list: readonly Told[]): Told[] {
  const last = withoutHeaders(list).filter(({ commit }, i) => commit !== list[i + 1]?.commit)
  return last.filter(({ value }, i) => value !== null || (last[i - 1]?.value ?? null) !== null)
}

function mapped(told: ReadonlyMap<string, readonly Told[]>, by: (list: readonly Told[]) => Told[]): typeof told {
  return new Map([...told].map(([id, list]) => [id, by(list)] as const).filter(([, list]) => list.length > 0))
}

/** What is the same of such results. */
const comparable: Partial<Record<Difference, (list: readonly Told[]) => Told[]>> = {
  'join-headers': withoutHeaders,
  'told-each': lastOfCommits,
  'partner-came': (list) => withoutTime(lastOfCommits(list)),
}

/** What the engine gives instead, where no rule says it. */
const ownResults = JSON.parse(
  readFileSync(new URL('../conformance-streams/baselines/own-per-commit.json', import.meta.url), 'utf8'),
) as Readonly<Record<string, Pick<Result, 'output'>>>

function check(scenario: Recorded, result: Result): void {
  const [difference] = scenario.tags ?? []
  const [got, want] = [byKey(scenario, result), byKey(scenario, scenario.expect)]
  const rows = (stores: Result['stores']) => sorted(difference === 'partner-came' ? withoutTimes(stores) : stores)
  assert.deepEqual(rows(result.stores), rows(scenario.expect.stores))
  if (difference === undefined) {
    assert.deepEqual(shown(got), shown(want))
    return
  }
  assert.notDeepEqual(shown(got), shown(want), `nothing differs any more: leave out the tag ${difference}`)
  const by = comparable[difference]
  if (by !== undefined) assert.deepEqual(shown(mapped(got, by)), shown(mapped(want, by)))
  else assert.deepEqual(shown(got), shown(byKey(scenario, ownResults[scenario.name] ?? { output: [] })))
}

const folder = new URL('../conformance-streams/per-commit/', import.meta.url)

for (const file of readdirSync(folder).sort()) {
  describe(`told once per commit: ${file.replace('.json', '')}`, () => {
    for (const scenario of JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as readonly Recorded[]) {
      for (const lanes of [1, 3])
        test(`${scenario.name}, ${lanes} ${lanes === 1 ? 'lane' : 'lanes'}`, async () =>
          check(scenario, await resultOf(scenario, lanes)))
    }
  })
}
