/** What those who write to a topic have told, while partitions of it come and go. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type PartitionKey, partitionKey, type TopicPartition } from '../../../src/base/ids.ts'
import { encodeTag } from '../../../src/engine/commit/tag.ts'
import { Announcements, type OwnPartition } from '../../../src/engine/input/repartition/announcements.ts'
import type { ResolvedTopics } from '../../../src/engine/group/topics.ts'
import type { TopologyPlan } from '../../../src/topology/plan.ts'
import { World } from './world.ts'

const plan = {
  levels: 2,
  sources: [
    { index: 0, kind: 'topics', subtopology: 0, boundary: undefined },
    { index: 1, kind: 'boundary', subtopology: 1, boundary: 0 },
  ],
  subtopologies: [{}, {}],
  boundaries: [{ index: 0, fromSubtopology: 0, toSubtopology: 1, toSource: 1, heldBackMs: 0, isCircular: false }],
} as unknown as TopologyPlan

const everyMs = 50
const groupId = 'group'

/** A process that reads some partitions of `between`, as far as the test says. */
class Reader {
  readonly world = new World()
  readonly announcements: Announcements
  /** How far each of its partitions was read; only these are its own. */
  readonly reached = new Map<PartitionKey, number>()
  /** Event times that heads were let go up to. */
  readonly gates: number[] = []
  /** Moments up to which all input is at hand. */
  readonly known: number[] = []

  constructor() {
    const { world } = this
    const { broker, clock } = world
    const topics = {
      bySource: [['in'], ['between']],
      topics: new Map(['in', 'between'].map((topic) => [topic, { partitions: 2 }])),
    } as unknown as ResolvedTopics
    this.announcements = new Announcements(
      { broker, clock, timers: world, groupId, plan, everyMs, maxTaskIdleMs: 0, writers: [] },
      {
        partitions: () => this.#own(),
        topics: () => topics,
        position: (tp) => this.reached.get(partitionKey(tp.topic, tp.partition)) ?? 0,
        reached: (tp, offset) => (this.reached.get(partitionKey(tp.topic, tp.partition)) ?? -1) >= offset,
        endsAtLeast: () => undefined,
        shows: () => undefined,
        cameTo: (_at, { upToMs }) => this.gates.push(upToMs),
        othersAt: () => undefined,
        knows: (_subtopology, { at }) => this.known.push(at),
        failed: (error) => assert.fail(error as Error),
      },
    )
  }

  async open(...partitions: readonly number[]): Promise<void> {
    await this.world.createTopic('in', 2)
    await this.world.createTopic('between', 2)
    for (const partition of partitions) this.read(partition, 0)
    this.announcements.start()
  }

  read(partition: number, to: number): void {
    this.reached.set(partitionKey('between', partition), to)
    this.announcements.settle()
  }

  comes(partition: number): void {
    this.reached.set(partitionKey('between', partition), 0)
    this.announcements.reassigned()
  }

  goes(partition: number): void {
    this.reached.delete(partitionKey('between', partition))
    this.announcements.reassigned()
  }

  /** Those who write have come so far, and each partition of `between` has a record more. */
  async write(timestamp: number): Promise<void> {
    const { broker } = this.world
    for (const partition of [0, 1]) await this.world.produce('between', partition, [timestamp])
    const metadata = encodeTag({ tokenEpoch: 1, seq: timestamp, maxTimestamp: timestamp, watermark: timestamp })
    await broker.commitOffsets(
      { groupId, memberId: '', generationId: -1, groupInstanceId: null },
      [0, 1].map((partition) => ({ topic: 'in', partition, offset: timestamp, metadata })),
    )
  }

  /** Its own partitions are done as far. */
  async commit(offset: number): Promise<void> {
    const member = { groupId, memberId: '', generationId: -1, groupInstanceId: null }
    const at = (topic: string, partition: number) => ({ topic, partition, offset, metadata: '' })
    await this.world.broker.commitOffsets(member, [at('between', 0), at('between', 1)])
  }

  #own(): OwnPartition[] {
    const all: TopicPartition[] = [0, 1].map((partition) => ({ topic: 'between', partition }))
    return all
      .filter(({ topic, partition }) => this.reached.has(partitionKey(topic, partition)))
      .map((tp) => ({ ...tp, source: 1, subtopology: 1 }))
  }
}

describe('what is told of a topic between sub-topologies', () => {
  test('does not wait for a partition that has gone, however fast the others are written to', async () => {
    const reader = new Reader()
    await reader.open(0, 1)
    await reader.write(1)
    await reader.world.pass(everyMs)
    reader.goes(1)
    // What is read is always two rounds behind what is written.
    for (let time = 2; time < 8; time++) {
      await reader.write(time)
      reader.read(0, time - 2)
      await reader.world.pass(everyMs)
    }
    assert.ok(reader.gates.length > 0, 'heads are let go')
    reader.announcements.close()
  })

  test('is not in force for a partition that came behind it, before that is read as far', async () => {
    const reader = new Reader()
    await reader.open(0)
    await reader.write(1)
    await reader.world.pass(everyMs)
    reader.comes(1)
    reader.read(0, 1)
    await reader.world.pass(2 * everyMs)
    assert.deepEqual(reader.gates, [])
    reader.read(1, 1)
    assert.deepEqual([...new Set(reader.gates)], [1])
    reader.announcements.close()
  })

  test('is not in force for a partition that came while it was asked', async () => {
    const reader = new Reader()
    await reader.open(0)
    await reader.write(1)
    reader.read(0, 1)
    const asked = reader.announcements.isDrained()
    reader.comes(1)
    await asked
    assert.deepEqual(reader.gates, [])
    reader.read(1, 1)
    assert.ok(reader.gates.length > 0)
    reader.announcements.close()
  })
})

test('whether all is done is known after one look that began behind the question, however many hops there are', async (t) => {
  const reader = new Reader()
  const asked = t.mock.method(reader.world.broker, 'committedOffsets')
  await reader.open(0, 1)
  await reader.write(1)
  reader.read(0, 1)
  reader.read(1, 1)
  assert.equal(await reader.announcements.isDrained(), false, 'nothing of the topic between is committed')
  await reader.commit(1)
  assert.equal(await reader.announcements.isDrained(), true)
  assert.equal(asked.mock.callCount(), 4)
  reader.announcements.close()
})
