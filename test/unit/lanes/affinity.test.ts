import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { keySlot } from '../../../src/base/hash.ts'
import { Affinity, affinityOf, changelogPartitions } from '../../../src/topology/affinity.ts'
import type { SourcePlan, TopologyPlan } from '../../../src/topology/plan.ts'

function source(index: number, subtopology: number, kind: SourcePlan['kind'], boundary?: number): SourcePlan {
  return {
    index,
    name: `source-${index}`,
    subtopology,
    kind,
    topics: kind === 'topics' ? [`topic-${index}`] : [],
    pattern: undefined,
    watermark: { maxOutOfOrdernessMs: 0, idlenessMs: undefined, alignment: undefined },
    extractsTimestamp: false,
    carriesValue: true,
    boundary,
    level: kind === 'boundary' ? 1 : 0,
    schedule: undefined,
  }
}

function plan(sources: readonly SourcePlan[], stores: ReadonlyArray<readonly string[]>, ways: Array<[number, number]>) {
  return {
    levels: 2,
    sources,
    subtopologies: stores.map((names, id) => ({
      id,
      level: 0,
      global: false,
      order: 'event-time' as const,
      stores: names,
      sources: sources.filter((s) => s.subtopology === id).map((s) => s.index),
    })),
    boundaries: ways.map(([from, to], index) => ({
      index,
      name: `b${index}`,
      topic: `b${index}-repartition`,
      fromSubtopology: from,
      toSubtopology: to,
      toSource: 0,
    })),
    stores: [],
  } satisfies TopologyPlan
}

/** 0 reads a topic without state, 1 counts what 0 hands over. */
const rekeyed = plan([source(0, 0, 'topics'), source(1, 1, 'boundary', 0)], [[], ['counts']], [[0, 1]])

describe('affinity', () => {
  test('a sub-topology fed by hand-overs has as many changelog partitions as the largest that feeds it', () => {
    assert.deepEqual(
      changelogPartitions(
        rekeyed,
        () => 6,
        (s) => rekeyed.sources[s]?.topics ?? [],
      ),
      [6, 6],
    )
    const chain = plan(
      [source(0, 0, 'topics'), source(1, 1, 'boundary', 0), source(2, 2, 'boundary', 1)],
      [[], ['a'], ['b']],
      [
        [0, 1],
        [1, 2],
      ],
    )
    assert.deepEqual(
      changelogPartitions(
        chain,
        () => 3,
        (s) => chain.sources[s]?.topics ?? [],
      ),
      [3, 3, 3],
    )
  })

  test('a circle of sub-topologies ends', () => {
    const circle = plan(
      [source(0, 0, 'topics'), source(1, 1, 'boundary', 0), source(2, 0, 'boundary', 1)],
      [['a'], ['b']],
      [
        [0, 1],
        [1, 0],
      ],
    )
    assert.deepEqual(
      changelogPartitions(
        circle,
        () => 5,
        (s) => circle.sources[s]?.topics ?? [],
      ),
      [5, 5],
    )
  })

  test('nothing has no partition at all', () => {
    const scheduled = plan([source(0, 0, 'scheduled')], [['a']], [])
    assert.deepEqual(
      changelogPartitions(
        scheduled,
        () => 5,
        () => [],
      ),
      [1],
    )
  })

  test('state lies by changelog partition, whatever the lanes; what has none uses every lane', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 12 }),
        fc.string(),
        (lanes, count, key) => {
          const slot = keySlot(Buffer.from(key))
          const affinity = affinityOf(rekeyed, lanes, 'in-process', [count, count])
          assert.equal(affinity.task(1, slot, 0), slot % count)
          assert.equal(affinity.tasks(1), count)
          assert.equal(affinity.tasks(0), lanes)
          assert.equal(affinity.task(0, slot, 0), slot % lanes)
          for (const sub of [0, 1]) {
            const lane = affinity.lane(sub, affinity.task(sub, slot, 0))
            assert.ok(lane >= 0 && lane < lanes)
          }
        },
      ),
    )
  })

  test('through topics a record belongs to the task of its partition', () => {
    const affinity = affinityOf(rekeyed, 3, 'repartition-topics', [4, 4])
    for (let partition = 0; partition < 4; partition++) {
      assert.equal(affinity.task(0, 12345, partition), partition)
      assert.equal(affinity.task(1, 12345, partition), partition)
    }
    assert.equal(affinity.tasks(0), 4)
  })

  test('is the same behind the way between threads', () => {
    const affinity = affinityOf(rekeyed, 3, 'in-process', [4, 4])
    const copy = Affinity.from(structuredClone(affinity.toJSON()))
    for (const sub of [0, 1]) {
      assert.equal(copy.tasks(sub), affinity.tasks(sub))
      assert.equal(copy.stateful(sub), affinity.stateful(sub))
      for (let slot = 0; slot < 20; slot++) assert.equal(copy.task(sub, slot, 0), affinity.task(sub, slot, 0))
    }
  })
})
