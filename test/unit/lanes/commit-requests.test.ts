/** What a lane asks the engine for: time brings things about without a record, and nothing else would commit them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LaneOptions } from '../../../src/lanes/lane-options.ts'
import { CommitRequests } from '../../../src/lanes/levels/commit-requests.ts'

test('outputs and changes without rows past their time are asked for, once a commit', () => {
  const asked: unknown[] = []
  const options: Partial<LaneOptions> = { lane: 0, toEngine: (message) => void asked.push(message) }
  const requests = new CommitRequests(options as LaneOptions, {
    run: () => 1,
    barrier: () => ({ epoch: 7, hasInput: false }),
  })
  const tasks = { hasExpired: () => false, hasEffects: () => false }
  requests.requestFor(tasks, { hasAny: false })
  assert.deepEqual(asked, [])
  for (let commit = 1; commit <= 2; commit++) {
    requests.requestFor({ ...tasks, hasEffects: () => commit === 1 }, { hasAny: commit === 2 })
    requests.requestFor({ ...tasks, hasEffects: () => true }, { hasAny: true })
    assert.equal(asked.length, commit)
    requests.reset()
  }
  assert.deepEqual(asked[0], { type: 'commit-wanted', lane: 0, run: 1, epoch: 7, urgent: false })
})

test('what comes of records that the engine has sent is committed without being asked for', () => {
  const asked: unknown[] = []
  const options: Partial<LaneOptions> = { lane: 0, toEngine: (message) => void asked.push(message) }
  const barrier = { epoch: 7, hasInput: true }
  const requests = new CommitRequests(options as LaneOptions, { run: () => 1, barrier: () => barrier })
  const tasks = { hasExpired: () => false, hasEffects: () => true }
  requests.requestFor(tasks, { hasAny: true })
  assert.deepEqual(asked, [])
  barrier.hasInput = false
  requests.requestFor(tasks, { hasAny: true })
  assert.equal(asked.length, 1)
})
