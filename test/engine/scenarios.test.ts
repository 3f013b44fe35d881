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
  type NamedStore,
  prefixOf,
  type Recorded,
  recordsOf,
} from './support/scenario-bundle.ts'

/** Results by topic and key, each in order. */
type Outputs = Record<string, string[]>
type Contents = Record<string, string[]>

/** Where the engine's one watermark, or what its documentation promises, gives another result than Kafka Streams. */
const ownResult = new Set([
  'operator-time',
  'double-emit',
  'initial-as-old',
  // Its processor sends records from the future: the windows' own clock follows them, the watermark does not.
  'processors/fan-out-window',
])

const perApplication = 60

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
function rounds(scenario: Recorded, globalTopics: ReadonlySet<string>): InputRecord[][] {
  const result: InputRecord[][] = [[]]
  let last: InputRecord | undefined
  for (const record of recordsOf(scenario)) {
    const tie = last && last.topic !== record.topic && last.timestamp === record.timestamp
    const global = last && globalTopics.has(last.topic) !== globalTopics.has(record.topic)
    if (tie || global) result.push([])
    result.at(-1)?.push(record)
    last = record
  }
  return result
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
  runtime: Runtime,
  spec: StoreSpec,
  how: NamedStore,
  times: readonly number[],
): Promise<Json[]> {
  const changes: ByteChange[] = []
  await eachCommitted(runtime.broker, changelogTopic(runtime.view.applicationId, spec), (cursor) => {
    const [key, value] = [keyBytesOf(cursor), valueBytesOf(cursor)]
    changes.push(
      restoreEntry(spec, { key: key && key.slice(), value: value && value.slice(), timestamp: cursor.timestamp }),
    )
  })
  const store = openStore(spec, new MemoryBackend(), 0, { streamTime: () => Math.max(...times) })
  store.restore(changes, { changelogOffset: changes.length, commitId: '', topicId: '' })
  return contentOf(store, how, times)
}

async function outputsOf(runtime: Runtime, scenario: Recorded, prefix: string, topics: string[]): Promise<Outputs> {
  const inputs = new Set(recordsOf(scenario).map((record) => prefix + record.topic))
  const outputs: Outputs = {}
  for (const topic of topics.filter((name) => name.startsWith(prefix) && !inputs.has(name))) {
    const decoder = new PrintDecoder(runtime.view.topology(), topic)
    await eachCommitted(runtime.broker, topic, (cursor) => {
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

function topicsOf(topology: CompiledTopology, kind: 'topics' | 'global'): Set<string> {
  return new Set(topology.sources.flatMap((source) => (source.kind === kind ? source.topics : [])))
}

async function runBundle(from: number, to: number, lanes: number, optimize: boolean): Promise<void> {
  const scenarios = eligibleScenarios(optimize).slice(from, to)
  let kinds: Array<Map<string, NamedStore>> = []
  defineApp({
    applicationId: 'scenarios',
    build: (topology) => {
      kinds = buildBundle(topology, scenarios)
    },
  }).compile({ optimize })
  const url = new URL('./apps/scenarios.ts', import.meta.url)
  url.search = new URLSearchParams({ from: `${from}`, to: `${to}`, optimize: optimize ? 'all' : 'none' }).toString()
  const problems: string[] = []
  const runtime = await startRuntime({
    application: url,
    config: {
      'runtime.http.enabled': false,
      'engine.lanes.count': lanes,
      'engine.state.store': 'memory',
      'broker.embedded.partitions': 1,
      'watermark.idleness-timeout': 20,
      'commit-barrier.interval-ms': 20,
      ...(optimize && { 'topology.optimization': 'all' }),
    },
    log: (line) => {
      if (line.level !== 'info' && line.level !== 'debug') problems.push(line.message)
    },
  })
  try {
    const topology = runtime.view.topology() as CompiledTopology
    await feed(runtime, scenarios, topicsOf(topology, 'global'))
    const topics = (await runtime.broker.topics(null)).map((topic) => topic.topic)
    const wrong: string[] = []
    for (const [i, scenario] of scenarios.entries()) {
      const difference = await compare(runtime, scenario, prefixOf(i), topics, kinds[i] ?? new Map())
      if (difference !== undefined) wrong.push(`${scenario.name}: ${difference}`)
    }
    assert.deepEqual(wrong, [], problems.join('\n'))
  } finally {
    await runtime.stop()
  }
}

async function feed(runtime: Runtime, scenarios: readonly Recorded[], globalTopics: Set<string>): Promise<void> {
  const all = scenarios.map((scenario, i) => {
    const prefix = prefixOf(i)
    const own = [...globalTopics].filter((topic) => topic.startsWith(prefix))
    return rounds(scenario, new Set(own.map((topic) => topic.slice(prefix.length))))
  })
  const count = Math.max(...all.map((list) => list.length))
  for (let round = 0; round < count; round++) {
    const records = all.flatMap((list, i) => (list[round] ?? []).map((record) => [prefixOf(i), record] as const))
    await produce(runtime.broker, records)
    await runtime.untilIdle()
  }
}

async function compare(
  runtime: Runtime,
  scenario: Recorded,
  prefix: string,
  topics: string[],
  kinds: ReadonlyMap<string, NamedStore>,
): Promise<string | undefined> {
  const topology = runtime.view.topology() as CompiledTopology
  const want = await expected(scenario)
  const times = recordsOf(scenario).map((record) => record.timestamp)
  const stores: Record<string, Json[]> = {}
  for (const name of Object.keys(want.stores)) {
    const spec = topology.stores.get(prefix + name)
    const how = kinds.get(prefix + name)
    assert.ok(spec && how, `${scenario.name} has no store ${name}`)
    if (topology.globalStores.has(prefix + name)) stores[name] = want.stores[name]?.map((row) => JSON.parse(row)) ?? []
    else stores[name] = await storeContent(runtime, spec, how, times)
  }
  const outputs = await outputsOf(runtime, scenario, prefix, topics)
  try {
    assert.deepEqual(outputs, want.outputs)
    assert.deepEqual(sortedRows(stores), want.stores)
  } catch (error) {
    return (error as Error).message
  }
}

describe('the recorded scenarios on the running engine', () => {
  for (const lanes of [1, 4]) {
    for (const optimize of [false, true]) {
      const total = eligibleScenarios(optimize).length
      for (let from = 0; from < total; from += perApplication) {
        const to = Math.min(total, from + perApplication)
        const which = `${from} to ${to - 1}${optimize ? ', optimized' : ''}`
        test(`give what they gave in one step after the other: ${lanes} lanes, scenarios ${which}`, () =>
          runBundle(from, to, lanes, optimize))
      }
    }
  }
})
