import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { commitId, compareTags, decodeTag, encodeTag, parseCommitId, withEnds } from '../../../src/engine/commit/tag.ts'

const time = fc.oneof(fc.maxSafeInteger(), fc.constant(Number.NEGATIVE_INFINITY))
const number = fc.nat()
const tag = fc.record(
  { tokenEpoch: number, seq: number, maxTimestamp: time, watermark: time },
  { noNullPrototype: true },
)

describe('the commit tag', () => {
  test('comes back from the metadata of an offset as it went in', () => {
    fc.assert(fc.property(tag, (t) => assert.deepEqual(decodeTag(encodeTag(t)), t)))
    fc.assert(
      fc.property(tag, (t) => assert.deepEqual(decodeTag(encodeTag({ ...t, idle: true })), { ...t, idle: true })),
    )
  })

  test('tells of what time the next record is, where it is later than what was dispatched', () => {
    const plain = { tokenEpoch: 3, seq: 4, maxTimestamp: 5, watermark: 6 }
    for (const comesTo of [0, 7, 1_700_000_000_000])
      assert.deepEqual(decodeTag(encodeTag({ ...plain, comesTo })), { ...plain, comesTo })
  })

  test('says which topic of its name it is of; one that does not was written by a version before', () => {
    const plain = { tokenEpoch: 3, seq: 4, maxTimestamp: 5, watermark: Number.NEGATIVE_INFINITY }
    const kept = { end: 9, timestamp: 7, offset: 8 }
    for (const t of [plain, { ...plain, idle: true }, { ...plain, held: '1:2', kept, stores: 'a,b' }]) {
      assert.equal(decodeTag(encodeTag(t))?.of, undefined)
      assert.deepEqual(decodeTag(withEnds(encodeTag({ ...t, of: 'abc12345' }), 'x.0.1')), {
        ...t,
        of: 'abc12345',
        ends: 'x.0.1',
      })
    }
  })

  test('is read without the parts that another version has added', () => {
    const plain = { tokenEpoch: 3, seq: 4, maxTimestamp: 5, watermark: 6 }
    assert.deepEqual(decodeTag(`${encodeTag({ ...plain, idle: true })}|new=a|ends=b|newer=`), {
      ...plain,
      idle: true,
      ends: 'b',
    })
  })

  test('fits into the metadata that a broker takes by default', () => {
    fc.assert(fc.property(tag, (t) => assert.ok(encodeTag(t).length < 4096)))
  })

  test('is not found in metadata that somebody else wrote', () => {
    for (const text of ['', 'v1', 'v1|1|2', 'v2|1|2|3|4', 'v1|a|2|3|4', 'v1|1|b|3|4', 'AgAAAYVq', '1|2|3|4|5']) {
      assert.equal(decodeTag(text), undefined, text)
    }
    fc.assert(fc.property(fc.string(), (text) => text.startsWith('v1|') || decodeTag(text) === undefined))
  })

  test('is ordered by run, then by commit, as its id is read', () => {
    fc.assert(
      fc.property(tag, tag, (a, b) => {
        const order = compareTags(a, b)
        assert.equal(Math.sign(order), -Math.sign(compareTags(b, a)) + 0)
        assert.equal(order === 0, commitId(a) === commitId(b))
        assert.deepEqual(parseCommitId(commitId(a)), { tokenEpoch: a.tokenEpoch, seq: a.seq })
      }),
    )
    assert.ok(compareTags({ tokenEpoch: 1, seq: 9 }, { tokenEpoch: 2, seq: 1 }) < 0)
    assert.equal(parseCommitId(''), undefined)
    assert.equal(parseCommitId('x.1'), undefined)
  })
})
