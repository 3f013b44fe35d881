/** The end of the input where two processes share it: one has the partitions numbered 0, another one those numbered 1. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '../../../src/base/clock.ts'
import { type PartitionKey, partitionKey, type TopicPartition } from '../../../src/base/ids.ts'
import { encodeTag } from '../../../src/engine/commit/tag.ts'
import type { ResolvedTopics } from '../../../src/engine/group/topics.ts'
import type { Route } from '../../../src/engine/input/dispatcher.ts'
import { EndOfTime, type Ending } from '../../../src/engine/input/repartition/end-of-time.ts'
import type { EngineSettings } from '../../../src/engine/settings.ts'
import { Watermarks } from '../../../src/time/watermarks.ts'

const sources = [
  { index: 0, kind: 'topics', subtopology: 0, boundary: undefined, watermark: {} },
  { index: 1, kind: 'boundary', subtopology: 1, boundary: 0, watermark: {} },
]
const plan = {
  sources,
  subtopologies: [{}, {}],
  boundaries: [{ index: 0, fromSubtopology: 0, toSubtopology: 1, toSource: 1, heldBackMs: 0, isCircular: false }],
}
const names = ['in', 'between']
const topics = {
  bySource: names.map((name) => [name]),
  topics: new Map(names.map((name) => [name, { partitions: 2 }])),
} as unknown as ResolvedTopics

const keyOf = (source: number, partition: number): PartitionKey => partitionKey(names[source] as string, partition)

class Process {
  readonly clock = new VirtualClock(1_700_000_000_000)
  readonly #watermarks = new Watermarks({ byTask: true })
  readonly #routes = new Map<PartitionKey, Route>()
  readonly #committed = new Map<PartitionKey, { maxTimestamp: number; watermark: number }>()
  readonly owed = new Set<PartitionKey>()
  readonly #end: EndOfTime

  /** `partition`: the number of its own; undefined: it has none. The newest record of the group is one of the other's. */
  constructor(partition: number | undefined) {
    for (const [source, topic] of names.entries()) {
      for (const number of [0, 1]) this.tells(source, number, 100)
      if (partition === undefined) continue
      const timing = { maxOutOfOrdernessMs: 0, idlenessMs: 0, alignment: undefined }
      const handle = this.#watermarks.assign({ topic, partition }, timing, { task: `${source}`, lag: 0, at: 0 })
      this.#watermarks.restoreTask(handle, 100)
      const route = { topic, partition, handle, source, subtopology: source }
      this.#routes.set(keyOf(source, partition), route as unknown as Route)
    }
    this.tells(0, 1, 100, 200)
    const committedOffsets = async (_group: string, asked: readonly TopicPartition[]) =>
      asked.map((at) => {
        const told = this.#committed.get(partitionKey(at.topic, at.partition))
        return { ...at, offset: 1, metadata: told ? encodeTag({ tokenEpoch: 1, seq: 1, ...told }) : '' }
      })
    const settings = { applicationId: 'app', split: 'repartition-topics', plan } as unknown as EngineSettings
    const options = { settings, broker: { committedOffsets }, clock: this.clock }
    this.#end = new EndOfTime(options as never, this.#watermarks, this.#routes, (key) => this.owed.add(key))
  }

  /** A commit says so, of its own partition or another's. */
  tells(source: number, partition: number, watermark: number, maxTimestamp = watermark): void {
    const before = this.#committed.get(keyOf(source, partition))?.maxTimestamp ?? maxTimestamp
    this.#committed.set(keyOf(source, partition), { maxTimestamp: Math.max(before, maxTimestamp), watermark })
  }

  async close(): Promise<Ending> {
    this.owed.clear()
    return await this.#end.close(topics)
  }

  watermarkOf(source: number): number {
    return this.#watermarks.inForce(this.#routes.get(keyOf(source, 0))?.handle as number)
  }
}

test('all tasks come to the newest time of the group, each once all that feed it have told that they are there', async () => {
  const own = new Process(0)
  assert.equal(await own.close(), 'rose')
  assert.deepEqual([own.watermarkOf(0), own.watermarkOf(1)], [200, 100])
  assert.deepEqual([...own.owed], ['in:0'], 'others hear of it with the next commit')
  own.tells(0, 0, 200)
  assert.equal(await own.close(), 'waits', 'the other process may have something to tell at its end')
  assert.equal(own.watermarkOf(1), 100)
  own.tells(0, 1, 200)
  assert.equal(await own.close(), 'rose')
  assert.equal(own.watermarkOf(1), 200)
  own.tells(1, 0, 200)
  assert.equal(await own.close(), 'waits')
  own.tells(1, 1, 200)
  assert.equal(await own.close(), 'ended')
})

test('a process without partitions has not come to the end before the others: what they have may still come to it', async () => {
  const own = new Process(undefined)
  assert.equal(await own.close(), 'waits')
  for (const source of [0, 1]) for (const partition of [0, 1]) own.tells(source, partition, 200)
  assert.equal(await own.close(), 'ended')
})

test('others that come no further are not waited for without end: nobody may have asked them', async () => {
  const own = new Process(0)
  assert.equal(await own.close(), 'rose')
  own.tells(0, 0, 200)
  assert.equal(await own.close(), 'waits')
  own.clock.advance(4000)
  own.tells(0, 1, 150)
  own.clock.advance(4000)
  assert.equal(await own.close(), 'waits', 'it has come further')
  own.clock.advance(5000)
  assert.equal(await own.close(), 'rose')
  own.tells(1, 0, 200)
  assert.equal(await own.close(), 'ended', 'what it does itself is no reason to wait longer')
})
