/** When results leave: what they wait for, how many may wait, and how much is told of as waiting. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { VirtualClock } from '../../../src/base/clock.ts'
import { usualSizes } from '../../../src/base/sizes.ts'
import { Outgoing } from '../../../src/engine/commit/outgoing.ts'
import type { Producer, ToProduce } from '../../../src/engine/commit/producer.ts'

const aheadBytes = 100
const limits = {
  guarantee: 'exactly-once',
  transactionTimeoutMs: 8000,
  uncommittedMaxBytes: 1000,
  sizes: { ...usualSizes, aheadBytes },
} as const

/** The sizes of what was sent at once, and of what leaves with the next flush. */
function outgoing(slowestMs = 0, guarantee: 'exactly-once' | 'at-least-once' = 'exactly-once') {
  const sent: number[] = []
  const queued: number[] = []
  const into = (list: number[]) => (batches: readonly ToProduce[]) => {
    list.push(...batches.map(({ records }) => records.length))
  }
  const producer: Partial<Producer> = { send: into(sent), queue: into(queued) }
  const of = new Outgoing({ ...limits, guarantee }, producer as Producer, new VirtualClock(0), () => slowestMs)
  return { of, sent, queued }
}

const batches = (...sizes: readonly number[]): ToProduce[] =>
  sizes.map((size) => ({ topic: 't', partition: 0, count: 1, records: new Uint8Array(size) }))

describe('results on their way, exactly once', () => {
  test('wait for their commit while they are few, and are told of as waiting', () => {
    const { of, sent, queued } = outgoing()
    of.add(batches(60, 39))
    of.addNext(batches(7))
    assert.deepEqual([sent, of.bytes], [[], 106])
    of.completed()
    assert.deepEqual([sent, queued, of.bytes], [[], [60, 39], 7])
    of.written()
    assert.deepEqual([sent, of.bytes], [[], 7])
  })

  test('leave once they are many, and what follows leaves as it comes, up to the commit', () => {
    const { of, sent, queued } = outgoing()
    of.add(batches(60))
    of.add(batches(40))
    assert.deepEqual([sent, of.bytes], [[60, 40], 0])
    of.add(batches(1))
    assert.deepEqual([sent, of.bytes], [[60, 40, 1], 0])
    of.completed()
    of.written()
    of.committed()
    of.add(batches(2))
    assert.deepEqual([sent, queued, of.bytes], [[60, 40, 1], [], 2])
  })

  test('wait until they fill half of the memory behind functions that are slow beside the time-out of the transaction', () => {
    const { of, sent } = outgoing(1001)
    of.add(batches(499))
    assert.deepEqual(sent, [])
    of.add(batches(1))
    assert.deepEqual(sent, [499, 1])
    const quick = outgoing(1000)
    quick.of.add(batches(100))
    assert.deepEqual(quick.sent, [100])
  })

  test('of the next epoch wait for the commit of this one, and are counted there', () => {
    const { of, sent } = outgoing()
    of.addNext(batches(60))
    of.addNext(batches(50))
    of.completed()
    of.written()
    assert.deepEqual([sent, of.bytes], [[], 110])
    of.committed()
    assert.deepEqual([sent, of.bytes], [[60, 50], 0])
  })
})

test('an epoch is not written, and not committed, while results of it wait', () => {
  for (const step of ['written', 'committed'] as const) {
    const { of } = outgoing()
    of.add(batches(1))
    assert.throws(() => of[step](), /have not left/)
  }
})

describe('results on their way, at least once', () => {
  test('leave as they come; those of the next epoch once the changelogs of this one are written', () => {
    const { of, sent, queued } = outgoing(0, 'at-least-once')
    of.add(batches(1))
    of.addNext(batches(2))
    assert.deepEqual([sent, of.bytes], [[1], 2])
    of.completed()
    of.written()
    assert.deepEqual([sent, of.bytes], [[1, 2], 0])
    of.addNext(batches(3))
    assert.deepEqual([sent, of.bytes], [[1, 2, 3], 0])
    of.committed()
    of.add(batches(4))
    of.addNext(batches(5))
    assert.deepEqual([sent, queued, of.bytes], [[1, 2, 3, 4], [], 5])
  })
})
