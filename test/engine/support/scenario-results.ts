/** What a scenario gives on the running engine, against what was recorded of Kafka Streams. */
import assert from 'node:assert/strict'
import { canonical, type Json, jsonOf } from '../../../conformance/expr.ts'
import { runScenario } from '../../../conformance/run.ts'
import type { BrokerPort } from '../../../src/broker/port.ts'
import { keyBytesOf, valueBytesOf } from '../../../src/cli/feed/print.ts'
import { PrintDecoder } from '../../../src/cli/feed/topic-codec.ts'
import { changelogTopic, restoreEntry } from '../../../src/state/rows/changelog.ts'
import type { ByteChange, StoreSpec } from '../../../src/state/contract.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { openStore } from '../../../src/state/open-store.ts'
import type { CompiledTopology } from '../../../src/topology/compiled.ts'
import { decodeHeaders, RecordBatchBuilder, RecordCursor } from '../../../src/broker/wire/record-batch.ts'
import {
  beginsBelowZero,
  contentOf,
  countsTimers,
  type InputRecord,
  moved,
  movedBack,
  type NamedStore,
  prefixOf,
  type Recorded,
  recordsOf,
} from './scenario-bundle.ts'

/** Results by topic and key, each in order. */
export type Outputs = Record<string, string[]>
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

export const applicationId = 'scenarios'

export interface Running {
  readonly broker: BrokerPort
  readonly topology: CompiledTopology
}

/** A scenario in an application: under which prefix, with how its stores are read, and by how much it was moved. */
export interface Placed {
  readonly scenario: Recorded
  readonly index: number
  readonly kinds: ReadonlyMap<string, NamedStore>
  readonly lanes: number
  readonly by: number
}

export async function expected({ scenario, by }: Placed): Promise<{ outputs: Outputs; stores: Contents }> {
  const own = ownResult.has(scenario.name) || scenario.tags?.some((tag) => ownResult.has(tag))
  // The recording has no windows below zero, moved times have them: there the test driver's word stands for it.
  const otherWindows = by !== 0 && beginsBelowZero(scenario)
  const { output, stores } =
    own || otherWindows
      ? await runScenario(otherWindows ? moved(scenario, by) : scenario, own ? 'watermark' : 'kafka-streams')
      : scenario.expect
  const outputs: Outputs = {}
  for (const { topic, key, value, timestamp, headers } of output ?? []) {
    add(outputs, topic, key, { value: value ?? null, timestamp, headers: (headers ?? []) as Json }, by)
  }
  return { outputs, stores: sortedRows(stores ?? {}, by) }
}

export function add(outputs: Outputs, topic: string, key: Json, shown: Json, by: number): void {
  const id = `${topic} ${canonical(movedBack(key, by))}`
  outputs[id] ??= []
  outputs[id].push(canonical(movedBack(shown, by)))
}

export function sortedRows(stores: Readonly<Record<string, readonly Json[]>>, by: number): Contents {
  return Object.fromEntries(
    Object.entries(stores).map(([name, rows]) => [name, rows.map((row) => canonical(movedBack(row, by))).sort()]),
  )
}

export async function produce(
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

async function outputsOf(engine: Running, { scenario, index, by }: Placed, topics: string[]): Promise<Outputs> {
  const prefix = prefixOf(index)
  const inputs = new Set(recordsOf(scenario).map((record) => prefix + record.topic))
  const outputs: Outputs = {}
  for (const topic of topics.filter((name) => name.startsWith(prefix) && !inputs.has(name))) {
    const decoder = new PrintDecoder(engine.topology, topic)
    await eachCommitted(engine.broker, topic, (cursor) => {
      const key = keyBytesOf(cursor)
      const value = valueBytesOf(cursor)
      const headers = cursor.headersEnd > cursor.headersStart ? headersOf(cursor) : []
      const json = (text: unknown): Json => JSON.parse(JSON.stringify(text).replaceAll(prefix, '')) as Json
      const shown = { value: value === null ? null : json(decoder.value(value)), timestamp: cursor.timestamp, headers }
      add(outputs, topic.slice(prefix.length), key === null ? null : json(jsonOf(decoder.key(key))), shown, by)
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

/** What the engine wrote, and what its changelogs hold of these stores; a global store has none but its topic. */
export async function found(
  engine: Running,
  placed: Placed,
  names: readonly string[],
): Promise<{ outputs: Outputs; stores: Readonly<Record<string, readonly Json[]>> }> {
  const { topology, broker } = engine
  const { scenario, index, kinds, by } = placed
  const prefix = prefixOf(index)
  const times = recordsOf(scenario).map((record) => record.timestamp + by)
  const stores: Record<string, Json[]> = {}
  for (const name of names) {
    const spec = topology.stores.get(prefix + name)
    const how = kinds.get(prefix + name)
    assert.ok(spec && how, `${scenario.name} has no store ${name}`)
    if (!topology.globalStores.has(prefix + name)) stores[name] = await storeContent(engine, spec, how, times)
  }
  const own = new Set([...topology.stores.values()].map((spec) => changelogTopic(applicationId, spec)))
  const topics = (await broker.topics(null)).map((info) => info.topic).filter((topic) => !own.has(topic))
  return { outputs: await outputsOf(engine, placed, topics), stores }
}

/** The difference between what the engine gave and what it should have given; undefined when there is none. */
export async function difference(engine: Running, placed: Placed): Promise<string | undefined> {
  const { scenario, lanes, by } = placed
  const want = await expected(placed)
  const { outputs, stores } = await found(engine, placed, Object.keys(want.stores))
  for (const name of Object.keys(want.stores)) if (!(name in stores)) delete want.stores[name]
  if (lanes > 1 && countsTimers.has(scenario.name)) {
    assert.ok((outputs['out "tick"']?.length ?? 0) <= 3 * lanes, `${scenario.name}: more ticks than lanes count`)
    for (const results of [outputs, want.outputs]) delete results['out "tick"']
  }
  try {
    assert.deepEqual(outputs, want.outputs)
    // What a store forgets is forgotten with its next change, also where a changelog still has it.
    if (!scenario.tags?.includes('retention')) assert.deepEqual(sortedRows(stores, by), want.stores)
  } catch (error) {
    return `${scenario.name}: ${(error as Error).message}`
  }
}
