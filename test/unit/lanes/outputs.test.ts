import assert from 'node:assert/strict'
import { test } from 'node:test'
import { usualSizes } from '../../../src/base/sizes.ts'
import { unpack } from '../../../src/engine/commit/producer.ts'
import { Outputs } from '../../../src/lanes/outputs.ts'

const known = { topic: 'out', partitions: 1, maxBatchBytes: 1_000_000, needsKey: false }
const value = new Uint8Array(100)

function countOf(outputs: Outputs, epoch: number): number {
  return unpack(outputs.take(epoch)).reduce((sum, { count }) => sum + count, 0)
}

test('outputs take as much as their batches will, record after record', () => {
  const outputs = new Outputs(() => assert.fail('the topic is known'))
  outputs.setTopic(known)
  for (let n = 1; n <= 50; n++) outputs.add(1, 'out', null, value, n, [], undefined)
  const bytes = outputs.bytes(1)
  const [batch] = unpack(outputs.take(1))
  assert.equal(bytes, batch?.records.length)
  assert.deepEqual([outputs.bytes(1), outputs.hasAny], [0, false])
})

test('outputs are worth a request once they are many, those of either epoch for themselves', () => {
  const outputs = new Outputs(() => assert.fail('the topic is known'), { ...usualSizes, outputBytes: 500 })
  outputs.setTopic(known)
  for (let n = 1; n <= 3; n++) outputs.add(1, 'out', null, value, n, [], undefined)
  assert.equal(outputs.isFull(1), false)
  for (let n = 1; n <= 5; n++) outputs.add(2, 'out', null, value, n, [], undefined)
  assert.deepEqual([outputs.isFull(1), outputs.isFull(2)], [false, true])
})

test('records wait for their topic with a key and without one, and leave once it is known', () => {
  const asked: string[] = []
  const outputs = new Outputs((topic) => asked.push(topic))
  assert.equal(outputs.add(1, 'out', null, value, 1, [], undefined), 'later')
  assert.equal(outputs.add(1, 'out', new Uint8Array([1]), value, 2, [], undefined), 'later')
  assert.deepEqual([outputs.unresolved(1), asked], [true, ['out']])
  outputs.setTopic(known)
  assert.equal(outputs.unresolved(1), false)
  assert.equal(countOf(outputs, 1), 2)
})

test('records without a key go round the partitions of their topic, and those with one do not', () => {
  const outputs = new Outputs(() => undefined)
  for (let n = 1; n <= 3; n++) outputs.add(1, 'round', null, value, n, [], undefined)
  for (let n = 1; n <= 3; n++) outputs.add(1, 'keyed', new Uint8Array([1]), value, n, [], undefined)
  for (const topic of ['round', 'keyed']) outputs.setTopic({ ...known, topic, partitions: 3 })
  const batches = unpack(outputs.take(1))
  const partitionsOf = (of: string): number => batches.filter(({ topic }) => topic === of).length
  assert.deepEqual([partitionsOf('round'), partitionsOf('keyed')], [3, 1])
})
