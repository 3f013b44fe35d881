/** What a process says of records that go before their turn, through topics between sub-topologies. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PartitionKey, partitionKey } from '../../../src/base/ids.ts'
import { noHeaders } from '../../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../../src/broker/wire/record-batch.ts'
import type { Route } from '../../../src/engine/input/dispatcher.ts'
import { PartitionBuffer } from '../../../src/engine/input/partition-buffer.ts'
import { SortedInput } from '../../../src/engine/input/repartition/sorted-input.ts'
import type { SortedBuffer } from '../../../src/engine/input/repartition/sorted-buffer.ts'
import type { EngineSettings } from '../../../src/engine/settings.ts'
import { Watermarks } from '../../../src/time/watermarks.ts'

const topic = 'app-by-product-repartition'
const at = { topic, partition: 0 }
const settings = {
  split: 'repartition-topics',
  maxTaskIdleMs: 0,
  bufferedMaxBytes: 64 * 1024 * 1024,
  plan: {
    subtopologies: [{}, { order: 'event-time' }],
    boundaries: [{ fromSubtopology: 0, toSubtopology: 1, isCircular: false }],
    sources: [
      { kind: 'topics', subtopology: 0 },
      { kind: 'boundary', subtopology: 1, boundary: 0 },
    ],
  },
} as unknown as EngineSettings

/** A partition in which so many records of a kilobyte lie; nobody has told how far those have come who write to it. */
function holding(records: number, bufferedMaxBytes: number) {
  const watermarks = new Watermarks({ byTask: true })
  const nothing = (): void => undefined
  const inner = new PartitionBuffer(
    { ...at, offset: 0, capacity: 10_000, maxPollRecords: 10_000, isolation: 'read_committed' },
    { arrived: nothing, polled: nothing, hungry: nothing, failed: nothing },
  )
  const routes = new Map<PartitionKey, Route>()
  const told: string[] = []
  let now = 0
  const clock = { now: () => now, monotonic: () => now }
  const input = new SortedInput({ ...settings, bufferedMaxBytes }, watermarks, routes, clock, (line) => told.push(line))
  const handle = watermarks.assign(
    at,
    { maxOutOfOrdernessMs: 0, idlenessMs: 0, alignment: undefined },
    { task: '1', lag: undefined, at: 0 },
  )
  const sorted = input.bufferFor(1, '1', inner, undefined)
  const route = { ...at, handle, task: '1', subtopology: 1, source: 1, buffer: inner, sorted } as unknown as Route
  routes.set(partitionKey(topic, 0), route)
  input.assigned([at], now)
  const write = (from: number, count: number): void => {
    const builder = new RecordBatchBuilder()
    for (let i = 0; i < count; i++) builder.append(from + i, Buffer.from('k'), Buffer.alloc(1000), noHeaders)
    const batch = builder.finish()
    new DataView(batch.buffer, batch.byteOffset).setBigInt64(0, BigInt(inner.position))
    inner.append(batch, [])
    input.arrived(route)
  }
  write(1000, records)
  return { input, told, write, sorted: sorted as SortedBuffer, time: () => (now += 61_000) }
}

test('where memory reaches no further than to one who is behind, it is told once that the order was lost', () => {
  const { input, told, write, sorted } = holding(600, 1)
  write(900, 2)
  assert.equal(input.settle(), true)
  assert.equal(input.settle(), false)
  assert.deepEqual(told, [], 'what went may have been the oldest of all')
  while (sorted.hasHead) sorted.shift()
  input.settle()
  input.settle()
  assert.equal(told.length, 1)
  assert.match(told[0] ?? '', /^records of app-by-product-repartition\/0 came when younger ones had gone before them/)
  assert.match(told[0] ?? '', /farther behind than memory reaches, 256 KiB .* a larger value waits longer/)
})

test('what came in order was not overtaken, however full memory was', () => {
  const { input, told, write, sorted } = holding(600, 1)
  write(1600, 2)
  input.settle()
  while (sorted.hasHead) sorted.shift()
  input.settle()
  assert.deepEqual(told, [])
})

test('where one who writes has told nothing for a minute, and older records of it came then, that is told', () => {
  const { input, told, write, time } = holding(600, 64 * 1024 * 1024)
  assert.equal(input.settle(), false)
  time()
  assert.equal(input.settle(), true)
  assert.deepEqual(told, [])
  write(900, 1)
  input.settle()
  assert.match(told.join(), /had told nothing for a minute; see whether all processes/)
})
