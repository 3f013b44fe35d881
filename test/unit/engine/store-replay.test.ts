import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreReplay } from '../../../src/engine/store-replay.ts'

const name = { store: 'counts', partition: 0, lane: 0 }
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
