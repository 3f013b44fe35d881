/** What a lane asks the engine for: time brings things about without a record, and nothing else would commit them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LaneOptions } from '../../../src/lanes/lane-options.ts'
import { usualSizes } from '../../../src/base/sizes.ts'
import { CommitRequests } from '../../../src/lanes/levels/commit-requests.ts'
import { Outputs } from '../../../src/lanes/outputs.ts'

test('outputs and changes without rows past their time are asked for, once a commit', () => {
  const asked: unknown[] = []
  const options: Partial<LaneOptions> = { lane: 0, toEngine: (message) => void asked.push(message) }
  const requests = new CommitRequests(options as LaneOptions, () => 1)
  const tasks = { hasExpired: () => false, hasEffects: () => false }
  requests.requestFor(tasks, { hasAny: false })
  assert.deepEqual(asked, [])
  for (let commit = 1; commit <= 2; commit++) {
    requests.requestFor({ ...tasks, hasEffects: () => commit === 1 }, { hasAny: commit === 2 })
    requests.requestFor({ ...tasks, hasEffects: () => true }, { hasAny: true })
    assert.equal(asked.length, commit)
    requests.reset()
  }
  assert.deepEqual(asked[0], { type: 'commit-wanted', lane: 0, run: 1, urgent: false })
})

test('outputs that have left for the engine wait for a commit as well, until their epoch ends', () => {
  const outputs = new Outputs(() => undefined, { ...usualSizes, outputBytes: 100 })
  outputs.setTopic({ topic: 'told', partitions: 1, maxBatchBytes: 1000, needsKey: false })
  const add = (): void => void outputs.add(1, 'told', null, Buffer.alloc(200), 0, [], undefined)
  add()
  assert.equal(outputs.isFull(1), true)
  assert.equal(outputs.take(1, false).length, 1)
  assert.deepEqual([outputs.bytes(1), outputs.hasAny], [0, true])
  add()
  assert.equal(outputs.take(1, true).length, 1)
  assert.equal(outputs.hasAny, false)
})
