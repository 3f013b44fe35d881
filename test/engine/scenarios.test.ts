/** The recorded scenarios on the running engine: the results of Kafka Streams, with one lane and with several. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { canonical, type Json, jsonOf } from '../../conformance/expr.ts'
import { runScenario } from '../../conformance/run.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { keyBytesOf, valueBytesOf } from '../../src/cli/print.ts'
import { PrintDecoder } from '../../src/cli/topic-codec.ts'
import { defineApp } from '../../src/index.ts'
import { type Runtime, startRuntime } from '../../src/runtime/index.ts'
import { changelogTopic, restoreEntry } from '../../src/state/changelog.ts'
import type { ByteChange, StoreSpec } from '../../src/state/contract.ts'
import { MemoryBackend } from '../../src/state/memory-backend.ts'
import { openStore } from '../../src/state/open-store.ts'
import type { CompiledTopology } from '../../src/topology/compiled.ts'
import { decodeHeaders, RecordBatchBuilder, RecordCursor } from '../../src/wire/record-batch.ts'
import {
  buildBundle,
  contentOf,
  eligibleScenarios,
  type InputRecord,
  mixesKeys,
  type NamedStore,
  prefixOf,
  type Recorded,
  recordsOf,
  timelessScenarios,
} from './support/scenario-bundle.ts'
import { ScenarioWorld } from './support/scenario-world.ts'

/** Results by topic and key, each in order. */
type Outputs = Record<string, string[]>
type Contents = Record<string, string[]>

/** Where the engine's one watermark, or what its documentation promises, gives another result than Kafka Streams. */
const ownResult = new Set([
  'operator-time',
  'double-emit',
  'double-final',
  'initial-as-old',
  'spurious-outer',
  // Its processor sends records from the future: the windows' own clock follows them, the watermark does not.
  'processors/fan-out-window',
])

/** A processor without a store has one instance a lane, each with its own schedule: it ticks once for each of them. */
const onceForEveryLane = new Set(['punctuators/countdown'])

const perApplication = 40
const applicationId = 'scenarios'

interface Running {
  readonly broker: BrokerPort
  readonly topology: CompiledTopology
}

async function expected(scenario: Recorded): Promise<{ outputs: Outputs; stores: Contents }> {
  const own = ownResult.has(scenario.name) || scenario.tags?.some((tag) => ownResult.has(tag))
  const { output, stores } = own ? await runScenario(scenario, 'watermark') : scenario.expect
  const outputs: Outputs = {}
  for (const { topic, key, value, timestamp, headers } of output ?? []) {
    add(outputs, topic, key, { value: value ?? null, timestamp, headers: (headers ?? []) as Json })
  }
  return { outputs, stores: sortedRows(stores ?? {}) }
}

function add(outputs: Outputs, topic: string, key: Json, shown: Json): void {
  const id = `${topic} ${canonical(key)}`
  outputs[id] ??= []
  outputs[id].push(canonical(shown))
}

function sortedRows(stores: Readonly<Record<string, readonly Json[]>>): Contents {
  return Object.fromEntries(Object.entries(stores).map(([name, rows]) => [name, rows.map(canonical).sort()]))
}

/**
 * The input cut where two records of different topics have one timestamp: nothing but their arrival says which is first.
 * Within a round all topics are there at once, and the engine orders them itself.
 */
function rounds(scenario: Recorded, oneByOne: boolean): InputRecord[][] {
  const result: InputRecord[][] = []
  let last: InputRecord | undefined
  for (const record of recordsOf(scenario)) {
    const tie = last && last.topic !== record.topic && last.timestamp === record.timestamp
    if (!last || oneByOne || tie) result.push([])
    result.at(-1)?.push(record)
    last = record
  }
  return result
}

function mustGoOneByOne(scenario: Recorded): boolean {
  return mixesKeys(scenario) || scenario.topology.nodes.some(({ op }) => op === 'globalTable' || op === 'globalStore')
}

async function produce(
  broker: BrokerPort,
  records: ReadonlyArray<readonly [prefix: string, InputRecord]>,
): Promise<void> {
  const builders = new Map<string, RecordBatchBuilder>()
  for (const [prefix, { topic, key, value, timestamp, headers }] of records) {
    const builder = builders.get(prefix + topic) ?? new RecordBatchBuilder()
    builders.set(prefix + topic, builder)
    const bytes = value === null ? null : Buffer.from(JSON.stringify(value))
    builder.append(timestamp, key === null ? null : Buffer.from(key), bytes, headers ?? [])
  }
  const batches = [...builders].map(([topic, builder]) => ({ topic, partition: 0, records: builder.finish() }))
  if (batches.length > 0) await broker.produce({ transactionalId: null, batches })
}

async function eachCommitted(broker: BrokerPort, topic: string, visit: (cursor: RecordCursor) => void): Promise<void> {
  const [end] = await broker.listOffsets([{ topic, partition: 0 }], 'stable')
  const cursor = new RecordCursor()
  let offset = 0
  while (offset < (end?.offset ?? 0)) {
    const [fetched] = await broker.fetch({
      partitions: [{ topic, partition: 0, offset, maxBytes: 1 << 22 }],
      maxWaitMs: 100,
      maxBytes: 1 << 24,
      isolation: 'read_committed',
    })
    assert.ok(fetched)
    cursor.reset(fetched.records, offset, fetched.aborted, 'read_committed')
    while (cursor.next()) visit(cursor)
    offset = Math.max(offset, cursor.position)
  }
}

/** What the changelog says the store holds. */
async function storeContent(
  engine: Running,
  spec: StoreSpec,
  how: NamedStore,
  times: readonly number[],
): Promise<Json[]> {
  const changes: ByteChange[] = []
  await eachCommitted(engine.broker, changelogTopic(applicationId, spec), (cursor) => {
    const [key, value] = [keyBytesOf(cursor), valueBytesOf(cursor)]
    changes.push(
      restoreEntry(spec, { key: key?.slice() ?? null, value: value?.slice() ?? null, timestamp: cursor.timestamp }),
    )
  })
  const store = openStore(spec, new MemoryBackend(), 0, { streamTime: () => Math.max(...times) })
  store.restore(changes, { changelogOffset: changes.length, commitId: '', topicId: '' })
  return contentOf(store, how, times)
}

async function outputsOf(engine: Running, scenario: Recorded, prefix: string, topics: string[]): Promise<Outputs> {
  const inputs = new Set(recordsOf(scenario).map((record) => prefix + record.topic))
  const outputs: Outputs = {}
  for (const topic of topics.filter((name) => name.startsWith(prefix) && !inputs.has(name))) {
    const decoder = new PrintDecoder(engine.topology, topic)
    await eachCommitted(engine.broker, topic, (cursor) => {
      const key = keyBytesOf(cursor)
      const value = valueBytesOf(cursor)
      const headers = cursor.headersEnd > cursor.headersStart ? headersOf(cursor) : []
      const json = (text: unknown): Json => JSON.parse(JSON.stringify(text).replaceAll(prefix, '')) as Json
      add(outputs, topic.slice(prefix.length), key === null ? null : json(jsonOf(decoder.key(key))), {
        value: value === null ? null : json(decoder.value(value)),
        timestamp: cursor.timestamp,
        headers,
      })
    })
  }
  return outputs
}

function headersOf(cursor: RecordCursor): Json {
  return decodeHeaders(cursor.bytes, cursor.headersStart, cursor.headersEnd).map(([name, value]) => [
    name,
    value === null ? null : typeof value === 'string' ? value : Buffer.from(value).toString(),
  ]) as Json
}

async function compare(
  engine: Running,
  scenario: Recorded,
  prefix: string,
  kinds: ReadonlyMap<string, NamedStore>,
): Promise<string | undefined> {
  const { topology, broker } = engine
  const want = await expected(scenario)
  const times = recordsOf(scenario).map((record) => record.timestamp)
  const stores: Record<string, Json[]> = {}
  for (const name of Object.keys(want.stores)) {
    const spec = topology.stores.get(prefix + name)
    const how = kinds.get(prefix + name)
    assert.ok(spec && how, `${scenario.name} has no store ${name}`)
    // A global store has no changelog but its topic: nothing to see there.
    if (topology.globalStores.has(prefix + name)) stores[name] = want.stores[name]?.map((row) => JSON.parse(row)) ?? []
    else stores[name] = await storeContent(engine, spec, how, times)
  }
  const own = new Set([...topology.stores.values()].map((spec) => changelogTopic(applicationId, spec)))
  const topics = (await broker.topics(null)).map((info) => info.topic).filter((topic) => !own.has(topic))
  const outputs = await outputsOf(engine, scenario, prefix, topics)
  try {
    assert.deepEqual(outputs, want.outputs)
    // What a store forgets is forgotten with its next change, also where a changelog still has it.
    if (!scenario.tags?.includes('retention')) assert.deepEqual(sortedRows(stores), want.stores)
  } catch (error) {
    return `${scenario.name}: ${(error as Error).message}`
  }
}

async function inVirtualTime(scenario: Recorded, lanes: number): Promise<string | undefined> {
  let kinds: ReadonlyMap<string, NamedStore> = new Map()
  const application = defineApp({
    applicationId,
    build: (topology) => {
      kinds = buildBundle(topology, [scenario])[0] ?? kinds
    },
  })
  const world = new ScenarioWorld(application, lanes, scenario.optimize === true, 1)
  world.start()
  await world.idle()
  for (const round of rounds(scenario, mustGoOneByOne(scenario))) {
    await world.drive(
      produce(
        world.broker,
        round.map((record) => [prefixOf(0), record]),
      ),
    )
    await world.idle()
  }
  assert.deepEqual(world.problems, [], scenario.name)
  return world.drive(compare(world, scenario, prefixOf(0), kinds))
}

async function onThreads(scenarios: readonly Recorded[], search: URLSearchParams, lanes: number): Promise<void> {
  const optimize = search.get('optimize') === 'all'
  let kinds: Array<Map<string, NamedStore>> = []
  defineApp({
    applicationId,
    build: (topology) => {
      kinds = buildBundle(topology, scenarios)
    },
  }).compile({ optimize })
  const application = new URL('./apps/scenarios.ts', import.meta.url)
  application.search = search.toString()
  const problems: string[] = []
  const runtime = await startRuntime({
    application,
    config: {
      'runtime.http.enabled': false,
      'engine.lanes.count': lanes,
      'engine.state.store': 'memory',
      'broker.embedded.partitions': 1,
      'watermark.idleness-timeout': 20,
      'commit-barrier.interval-ms': 20,
      'topology.optimization': optimize ? 'all' : 'none',
    },
    log: (line) => {
      if (line.level === 'warn' || line.level === 'error') problems.push(line.message)
    },
  })
  try {
    await runtime.untilIdle()
    await feed(runtime, scenarios)
    const engine: Running = { broker: runtime.broker, topology: runtime.view.topology() as CompiledTopology }
    const wrong: Array<string | undefined> = []
    for (const [i, scenario] of scenarios.entries()) {
      wrong.push(await compare(engine, scenario, prefixOf(i), kinds[i] ?? new Map()))
    }
    assert.deepEqual(
      wrong.filter((difference) => difference !== undefined),
      [],
      problems.join('\n'),
    )
  } finally {
    await runtime.stop()
  }
}

async function feed(runtime: Runtime, scenarios: readonly Recorded[]): Promise<void> {
  const all = scenarios.map((scenario) => rounds(scenario, mustGoOneByOne(scenario)))
  const count = Math.max(...all.map((list) => list.length))
  for (let round = 0; round < count; round++) {
    const records = all.flatMap((list, i) => (list[round] ?? []).map((record) => [prefixOf(i), record] as const))
    await produce(runtime.broker, records)
    await runtime.untilIdle()
  }
}

describe('the recorded scenarios on the running engine', () => {
  for (const lanes of [1, 4]) {
    test(`give what they gave one step after the other: ${lanes} lanes`, async () => {
      const wrong: Array<string | undefined> = []
      const all = [...eligibleScenarios(false), ...eligibleScenarios(true)]
      assert.ok(all.length > 200, `${all.length} scenarios`)
      const here = all.filter(({ name }) => !(lanes > 1 && onceForEveryLane.has(name)))
      for (const scenario of here) wrong.push(await inVirtualTime(scenario, lanes))
      assert.deepEqual(
        wrong.filter((difference) => difference !== undefined),
        [],
      )
    })

    for (const optimize of [false, true]) {
      const scenarios = timelessScenarios(optimize)
      for (let from = 0; from < scenarios.length; from += perApplication) {
        const to = Math.min(scenarios.length, from + perApplication)
        const search = new URLSearchParams({ from: `${from}`, to: `${to}`, optimize: optimize ? 'all' : 'none' })
        const which = `${from} to ${to - 1}${optimize ? ' of the optimized ones' : ''}`
        test(`give the same on threads, many in one application: ${lanes} lanes, ${which}`, () =>
          onThreads(scenarios.slice(from, to), search, lanes))
      }
    }
  }
})
