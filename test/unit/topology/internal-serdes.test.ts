import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Subscription, subscriptionSerde } from '../../../src/topology/serdes/internal-serdes.ts'

const subscription = { instruction: 'answer', primaryKey: Uint8Array.of(1, 2), hash: 7 } as const

test('a subscription says where its left row lies, behind all that an earlier build reads', () => {
  const told: Subscription = { ...subscription, partition: 300 }
  const bytes = subscriptionSerde.serialize(told)
  assert.deepEqual(subscriptionSerde.deserialize(bytes), told)
  assert.deepEqual(bytes.subarray(0, -4), subscriptionSerde.serialize({ ...subscription, partition: undefined }))
})

test('one of an earlier build does not', () => {
  // Instruction, primary key with its length, whether there is a hash, the hash.
  const bytes = Uint8Array.of(3, 0, 0, 0, 2, 1, 2, 1, 0, 0, 0, 0, 0, 0, 0, 7)
  assert.deepEqual(subscriptionSerde.deserialize(bytes), { ...subscription, partition: undefined })
})
