import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { OffsetToCommit } from '../../../src/broker/port.ts'
import { ChangelogEnds, endKey, endsIn, type KnownEnds } from '../../../src/engine/commit/changelog-ends.ts'
import { encodeTag } from '../../../src/engine/commit/tag.ts'
import type { ResolvedTopics } from '../../../src/engine/group/topics.ts'
import type { EngineSettings } from '../../../src/engine/settings.ts'

const nobody: KnownEnds = new Map()

function worldOf(stores: readonly string[], topicIds: Readonly<Record<string, string>> = {}) {
  const plan = {
    stores: stores.map((name) => ({ name, subtopology: name === 'later' ? 1 : 0 })),
    sources: [
      { index: 0, subtopology: 0 },
      { index: 1, subtopology: 1 },
    ],
  }
  const settings = { plan } as unknown as EngineSettings
  const changelogs = new Map(
    stores.map((name) => [name, { topic: `${name}-changelog`, topicId: topicIds[name] ?? name }]),
  )
  const topics = { changelogs, bySource: [['in'], ['through']] } as unknown as ResolvedTopics
  return { ends: new ChangelogEnds(settings), topics }
}

const place = (partition: number, isTold: boolean, topic = 'in') => ({ topic, partition, isTold })
type Place = ReturnType<typeof place>
const encodeAs =
  (seq: number, stores = '') =>
  ({ topic, partition }: Place): OffsetToCommit => {
    const tag = { tokenEpoch: 1, seq, maxTimestamp: 5, watermark: 5, ...(stores && { stores }) }
    return { topic, partition, offset: 7, metadata: encodeTag(tag) }
  }

describe('what commits tell of the ends of changelogs', () => {
  test('stands beside the partition of the same number, whether or not its offset has moved', () => {
    const { ends, topics } = worldOf(['a', 'b'])
    const places = [place(0, true), place(1, false), place(2, false)]
    const written = [
      { store: 'a', partition: 1, end: 40 },
      { store: 'b', partition: 0, end: 3 },
    ]
    const told = ends.tell(topics, written, places, encodeAs(1))
    assert.deepEqual(
      told.map(({ partition }) => partition),
      [0, 1],
    )
    assert.deepEqual(
      told.map((offset) => [...endsIn([offset])]),
      [[[endKey('b', 0), 3]], [[endKey('a', 1), 40]]],
    )
    // What was told before of the others of that partition is told again with it.
    const next = ends.tell(topics, [{ store: 'b', partition: 1, end: 9 }], places, encodeAs(2))
    assert.equal(endsIn(next).get(endKey('a', 1)), 40)
    assert.equal(endsIn(next).get(endKey('b', 1)), 9)
    // So it is, too, where the partition is committed for another reason.
    assert.equal(endsIn(next).get(endKey('b', 0)), 3)
  })

  test('stands beside a partition of the same task: others of its number may go to another process', () => {
    const { ends, topics } = worldOf(['a', 'later'])
    const places = [place(0, true), place(1, false), place(1, false, 'through')]
    const told = ends.tell(topics, [{ store: 'later', partition: 1, end: 40 }], places, encodeAs(1))
    assert.deepEqual(
      told.map(({ topic, partition }) => `${topic}:${partition}`),
      ['in:0', 'through:1'],
    )
    assert.deepEqual([...endsIn(told.slice(1))], [[endKey('later', 1), 40]])
  })

  test('is told in any case where there are fewer partitions than those of the changelogs', () => {
    const { ends, topics } = worldOf(['a'])
    const written = [0, 1, 2, 3, 4].map((partition) => ({ store: 'a', partition, end: 10 + partition }))
    const known = endsIn(ends.tell(topics, written, [place(0, true), place(1, false)], encodeAs(1)))
    assert.deepEqual(
      [0, 1, 2, 3, 4].map((partition) => known.get(endKey('a', partition))),
      [10, 11, 12, 13, 14],
    )
  })

  test('counts as the newest commit tells it, and not for a topic that was made anew', () => {
    const { ends, topics } = worldOf(['a'])
    const first = ends.tell(topics, [{ store: 'a', partition: 0, end: 40 }], [place(0, true, 'x')], encodeAs(1))
    const second = ends.tell(topics, [{ store: 'a', partition: 0, end: 30 }], [place(0, true, 'y')], encodeAs(2))
    const known = endsIn([...second, ...first])
    assert.equal(known.get(endKey('a', 0)), 30)
    assert.equal(known.get(endKey('another', 0)), undefined)
  })

  test('is corrected by the first commit after a loss that was accepted', () => {
    const { ends, topics } = worldOf(['a'])
    ends.found(topics, new Map([[endKey('a', 1), 40]]), { store: 'a', partition: 1, end: 30 })
    const places = [place(0, true), place(1, false)]
    assert.equal(endsIn(ends.tell(topics, [], places, encodeAs(1))).get(endKey('a', 1)), 30)
    ends.committed()
    assert.equal(ends.tell(topics, [], places, encodeAs(2)).length, 1)
    // A changelog that is as it was told needs no word.
    ends.found(topics, nobody, { store: 'a', partition: 1, end: 31 })
    assert.equal(ends.tell(topics, [], places, encodeAs(3)).length, 1)
  })

  test('takes no more room than a broker gives, beside the marks of the stores', () => {
    const names = Array.from({ length: 500 }, (_, i) => `store-${i}`)
    const { ends, topics } = worldOf(names)
    const written = names.map((store) => ({ store, partition: 0, end: Number.MAX_SAFE_INTEGER }))
    const [offset] = ends.tell(topics, written, [place(0, true)], encodeAs(1, 'x'.repeat(3000)))
    assert.ok((offset?.metadata.length ?? 0) <= 4096)
    const known = endsIn([offset as OffsetToCommit])
    assert.ok(known.size > 20 && [...known.values()].every((end) => end === Number.MAX_SAFE_INTEGER))
  })
})
