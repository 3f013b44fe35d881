/**
 * Random topologies and records: the test driver and the running engine, on threads, write the same, and their stores have the
 * same rows. DRIVER_SEEDS: how many topologies; DRIVER_FROM: the first.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { Random } from '../../src/base/random.ts'
import { RecordBatchBuilder, RecordCursor } from '../../src/broker/wire/record-batch.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { defineApp, serdes } from '../../src/index.ts'
import { startEmbeddedBroker, startRuntime } from '../../src/runtime/index.ts'
import { TopologyTestDriver } from '../../src/testing/index.ts'
import { buildRandom, type DrawnRecord, outputOf, partitions, recordsOf } from './support/random-topology.ts'
import { rowsOfDriver, rowsOfEngine, type StoreRows } from './support/store-rows.ts'

/** What was written about each key, in order. */
type Written = Record<string, string[]>

interface Made {
  readonly written: Written
  readonly stores: StoreRows
}

/** A busy machine has the engine warn, or start over in place: what it makes is the same. */
interface MadeByEngine extends Made {
  readonly warnings: readonly string[]
}

const first = Number(process.env.DRIVER_FROM ?? 1)
const seeds = Number(process.env.DRIVER_SEEDS ?? 12)
/** Side by side in one application: to start an engine takes longer than to run it. */
const perApplication = seeds > 50 ? 10 : 2

function note(into: Written, topic: string, key: Uint8Array | null, value: Uint8Array | null, timestamp: number): void {
  const id = `${topic} ${key === null ? '' : Buffer.from(key).toString('latin1')}`
  into[id] ??= []
  into[id].push(`${value === null ? null : Buffer.from(value).toString()} at ${timestamp}`)
}

async function byDriver(from: number, to: number, records: readonly DrawnRecord[], lanes: number): Promise<Made> {
  const app = defineApp({
    applicationId: 'random',
    build: (topology) => {
      for (let seed = from; seed < to; seed++) buildRandom(topology, seed)
    },
  })
  const driver = new TopologyTestDriver(app, { partitions, lanes })
  await driver.pipeAll(records)
  const written: Written = {}
  for (let seed = from; seed < to; seed++) {
    const output = driver.output<Uint8Array, Uint8Array>(outputOf(seed), { key: serdes.bytes, value: serdes.bytes })
    for (const { topic, key, value, timestamp } of output.readAll()) note(written, topic, key, value, timestamp)
  }
  // What is late depends on which partitions the engine knew of by then: of these records none is.
  assert.deepEqual(driver.dropped(), [])
  const stores = rowsOfDriver(driver, partitions)
  driver.close()
  return { written, stores }
}

async function byEngine(from: number, to: number, records: readonly DrawnRecord[]): Promise<MadeByEngine> {
  const broker = await startEmbeddedBroker({ partitions })
  const client = broker.client()
  await fill(client, records)
  const application = new URL('./apps/random-topology.ts', import.meta.url)
  application.search = new URLSearchParams({ from: `${from}`, to: `${to}` }).toString()
  const warnings: string[] = []
  const folder = mkdtempSync(join(tmpdir(), 'millrace-driver-'))
  const random = new Random(from)
  const runtime = await startRuntime({
    application,
    broker,
    config: {
      'runtime.http.enabled': false,
      'engine.lanes.count': random.pick([1, 2, 2, 4]),
      'engine.state.store': random.pick(['memory', 'memory', 'lmdb']),
      'engine.state.dir': folder,
      'commit-barrier.interval-ms': random.pick([5, 20, 100]),
    },
    log: (line) => {
      if (line.level === 'warn' || line.level === 'error') warnings.push(line.message)
    },
  })
  try {
    await runtime.untilIdle()
    const written: Written = {}
    for (let seed = from; seed < to; seed++) await readTopic(client, outputOf(seed), written)
    const topology = runtime.view.topology()
    assert.ok(topology)
    const stores = await rowsOfEngine(runtime, topology.stores.keys())
    return { written, stores, warnings }
  } finally {
    await runtime.stop()
    await broker.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function fill(broker: BrokerPort, records: readonly DrawnRecord[]): Promise<void> {
  const builders = new Map<string, RecordBatchBuilder>()
  for (const { topic, partition, key, value, timestamp } of records) {
    const id = `${topic}:${partition}`
    const builder = builders.get(id) ?? new RecordBatchBuilder()
    builders.set(id, builder)
    builder.append(timestamp, Buffer.from(key), value === null ? null : Buffer.from(JSON.stringify(value)), [])
  }
  await broker.createTopics([...new Set(records.map(({ topic }) => topic))].map((topic) => ({ topic, partitions })))
  const batches = [...builders].map(([id, builder]) => {
    const [topic, partition] = id.split(':') as [string, string]
    return { topic, partition: Number(partition), records: builder.finish() }
  })
  await broker.produce({ transactionalId: null, batches })
}

async function readTopic(broker: BrokerPort, topic: string, written: Written): Promise<void> {
  const cursor = new RecordCursor()
  const [info] = await broker.topics([topic])
  for (let partition = 0; partition < (info?.partitions ?? 0); partition++) {
    const [end] = await broker.listOffsets([{ topic, partition }], 'stable')
    for (let offset = 0; offset < (end?.offset ?? 0); ) {
      const asked = [{ topic, partition, offset, maxBytes: 1 << 24 }]
      const request = { partitions: asked, maxWaitMs: 100, maxBytes: 1 << 24, isolation: 'read_committed' } as const
      const [fetched] = await broker.fetch(request)
      assert.ok(fetched)
      cursor.reset(fetched.records, offset, fetched.aborted, 'read_committed')
      while (cursor.next()) {
        const { bytes, keyStart, keyEnd, valueStart, valueEnd, timestamp } = cursor
        const range = (start: number, to: number): Uint8Array | null => (start < 0 ? null : bytes.subarray(start, to))
        note(written, topic, range(keyStart, keyEnd), range(valueStart, valueEnd), timestamp)
      }
      offset = Math.max(offset, cursor.position)
    }
  }
}

describe('the test driver against the running engine', () => {
  for (let from = first; from < first + seeds; from += perApplication) {
    const to = Math.min(from + perApplication, first + seeds)
    test(`makes what the engine makes: random topologies ${from} to ${to - 1}`, async (t) => {
      const records = Array.from({ length: to - from }, (_, n) => recordsOf(from + n)).flat()
      const { warnings, ...expected } = await byEngine(from, to, records)
      for (const warning of warnings) t.diagnostic(warning)
      assert.ok(Object.keys(expected.written).length > 0)
      for (const lanes of [1, 3]) assert.deepEqual(await byDriver(from, to, records, lanes), expected, `${lanes} lanes`)
    })
  }
})
