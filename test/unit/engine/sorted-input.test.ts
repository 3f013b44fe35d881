/** What a process says of records that go before their turn, through topics between sub-topologies. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PartitionKey, partitionKey } from '../../../src/base/ids.ts'
import { noHeaders } from '../../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../../src/broker/wire/record-batch.ts'
import type { Route } from '../../../src/engine/input/dispatcher.ts'
import { PartitionBuffer } from '../../../src/engine/input/partition-buffer.ts'
import { SortedInput } from '../../../src/engine/input/repartition/sorted-input.ts'
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
function holding(records: number, bufferedMaxBytes: number): { input: SortedInput; told: string[]; time: () => void } {
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
  const sorted = input.bufferFor(1, inner, undefined)
  const route = { ...at, handle, subtopology: 1, source: 1, buffer: inner, sorted } as unknown as Route
  routes.set(partitionKey(topic, 0), route)
  input.assigned([at], now)
  const builder = new RecordBatchBuilder()
  const value = Buffer.alloc(1000)
  for (let i = 0; i < records; i++) builder.append(1000 + i, Buffer.from('k'), value, noHeaders)
  inner.append(builder.finish(), [])
  input.arrived(route)
  return { input, told, time: () => (now += 61_000) }
}

test('where memory reaches no further than to those who are behind, it is told once that the order is given up', () => {
  const { input, told } = holding(600, 1)
  assert.equal(input.settle(), true)
  assert.equal(input.settle(), false)
  assert.equal(told.length, 1)
  assert.match(told[0] ?? '', /^records of app-by-product-repartition\/0 go before older ones that may still come/)
  assert.match(told[0] ?? '', /more is kept than 256 KiB for each partition .* a larger value waits for them longer/)
})

test('where those who write tell nothing for a minute, that is told', () => {
  const { input, told, time } = holding(600, 64 * 1024 * 1024)
  assert.equal(input.settle(), false)
  assert.deepEqual(told, [])
  time()
  assert.equal(input.settle(), true)
  assert.match(told.join(), /have told nothing for a minute; see whether all processes/)
})
