import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { BrokerPort } from '../../../src/broker/port.ts'
import { endKey } from '../../../src/engine/commit/changelog-ends.ts'
import { findEnds } from '../../../src/engine/restore/find-ends.ts'
import { StoreReplay } from '../../../src/engine/restore/store-replay.ts'
import { Runs } from '../../../src/engine/run.ts'

const name = { run: new Runs().next(), store: 'counts', partition: 0, lane: 0 }
const info = { topic: 'app-counts-changelog', topicId: 'id' }
const partlyAhead = { changelogOffset: 5, ahead: 9, commitId: '1.3', topicId: 'id' }

test('a store with rows that are newer than its checkpoint is replayed from the checkpoint', () => {
  const replay = new StoreReplay(name, info, partlyAhead)
  replay.fit(0, 9)
  assert.equal(replay.rebuild, false)
  assert.equal(replay.position, 5)
})

test('a store that holds rows of which its changelog knows nothing is rebuilt', () => {
  const replay = new StoreReplay(name, info, partlyAhead)
  replay.fit(0, 8)
  assert.equal(replay.rebuild, true)
  assert.equal(replay.position, 0)
  // From then on it is as long as what it was given.
  replay.rebuild = false
  replay.position = 8
  replay.fit(0, 8)
  assert.equal(replay.rebuild, false)
})

test('a store that was written longer ago than deletions are remembered is rebuilt, unless nothing came since', () => {
  const written = { changelogOffset: 5, commitId: '1.3', topicId: 'id' }
  const hourMs = 3_600_000
  for (const [hours, end, rebuild] of [
    [20, 9, false],
    [25, 9, true],
    [25, 5, false],
  ] as const) {
    const replay = new StoreReplay(name, info, written, hours * hourMs)
    replay.fit(0, end)
    assert.equal(replay.rebuild, rebuild, `after ${hours} h, with the end at ${end}`)
  }
})

test('a store from which its changelog was written is not emptied by an end that the broker does not tell yet', () => {
  const replay = new StoreReplay(name, info, { changelogOffset: 5, commitId: '1.3', topicId: 'deleted' })
  assert.equal(replay.hasAllOf({ tokenEpoch: 1, seq: 3 }), true)
  assert.equal(replay.hasAllOf({ tokenEpoch: 1, seq: 4 }), false)
  replay.writtenUpTo(7)
  replay.fit(0, 0)
  assert.deepEqual([replay.rebuild, replay.position, replay.end], [false, 7, 7])
})

test('a changelog that ends before what commits tell of it is told, and one that is read to there is not', () => {
  const ends = new Map([[endKey(info.topicId, name.partition), 9]])
  const replay = new StoreReplay(name, info, null)
  replay.know(ends)
  replay.fit(0, 8)
  assert.match(replay.lostTail ?? '', /ends at offset 8, and what was committed goes up to 9/)
  replay.fit(0, 10)
  assert.equal(replay.lostTail, undefined)
  // A standby that has read all there is behind its predecessor must have come so far.
  replay.missEnd()
  assert.match(replay.lostTail ?? '', /ends at offset 0, and what was committed goes up to 9/)
  const anew = new StoreReplay(name, { ...info, topicId: 'made anew' }, null)
  anew.know(ends)
  anew.fit(0, 0)
  assert.equal(anew.lostTail, undefined)
})

describe('a changelog that shows less than was committed', () => {
  const onDisk = { changelogOffset: 9, commitId: '1.3', topicId: 'id' }

  function ends(stable: readonly number[], latest: number) {
    let asked = 0
    const listOffsets: BrokerPort['listOffsets'] = async (partitions, at) => {
      const offset = at === 'earliest' ? 0 : at === 'latest' ? latest : stable[Math.min(asked++, stable.length - 1)]
      return partitions.map((each) => ({ ...each, offset: offset as number }))
    }
    return { broker: { listOffsets } as BrokerPort, asked: () => asked }
  }

  function replayOf(): StoreReplay {
    const replay = new StoreReplay(name, info, onDisk)
    replay.know(new Map([[endKey('id', 0), 9]]))
    return replay
  }

  test('is waited for while it has more, and the store on disk stays as it is', async () => {
    const replay = replayOf()
    const { broker, asked } = ends([4, 4, 10], 10)
    await findEnds(broker, [replay], [], async () => undefined)
    assert.equal(asked(), 3)
    assert.deepEqual([replay.rebuild, replay.position, replay.end], [false, 9, 10])
    assert.deepEqual([replay.lost, replay.lostTail], [undefined, undefined])
  })

  test('is waited for no longer than somebody wants it', async () => {
    const { broker, asked } = ends([4], 10)
    let pauses = 0
    await findEnds(broker, [replayOf()], [], () => (++pauses > 2 ? undefined : Promise.resolve()))
    assert.equal(asked(), 3)
  })

  test('has lost it where it has no more', async () => {
    const replay = replayOf()
    await findEnds(ends([4], 4).broker, [replay], [], () => assert.fail('there is nothing to wait for'))
    assert.match(String(replay.lostTail), /ends at offset 4, and what was committed goes up to 9/)
  })
})
