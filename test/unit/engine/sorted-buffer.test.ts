/** Records of one partition in the order of event time, and what a commit in their midst leaves for the next process. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Random } from '../../../src/base/random.ts'
import { noHeaders } from '../../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../../src/broker/wire/record-batch.ts'
import { PartitionBuffer } from '../../../src/engine/input/partition-buffer.ts'
import { type Kept, SortedBuffer } from '../../../src/engine/input/repartition/sorted-buffer.ts'

const plenty = 1_000_000

function bufferAt(offset: number, kept?: Kept, mostBytes = plenty): SortedBuffer {
  const nothing = (): void => undefined
  const inner = new PartitionBuffer(
    { topic: 't', partition: 0, offset, capacity: 1000, maxPollRecords: 1000, isolation: 'read_committed' },
    {
      arrived: nothing,
      polled: nothing,
      hungry: nothing,
      failed: (_, error) => {
        throw error
      },
    },
  )
  return new SortedBuffer(inner, kept, { share: 0, most: mostBytes, used: 0 })
}

/** Gives the buffer the records from where it stands, `timestamps` being those of the whole log. */
function feed(buffer: SortedBuffer, timestamps: readonly number[], count: number): void {
  const from = buffer.inner.position
  const builder = new RecordBatchBuilder()
  for (const [i, timestamp] of timestamps.slice(from, from + count).entries())
    builder.append(timestamp, Buffer.from(`k${from + i}`), Buffer.from(`v${from + i}`), noHeaders)
  if (builder.count === 0) return
  const batch = builder.finish()
  new DataView(batch.buffer, batch.byteOffset).setBigInt64(0, BigInt(from))
  buffer.inner.append(batch, [])
  buffer.fill()
}

/** Takes the head out: its offset, by its own bytes. */
function take(buffer: SortedBuffer): number {
  const { headOffset, cursor } = buffer
  const text = (from: number, to: number): string => Buffer.from(cursor.bytes.subarray(from, to)).toString()
  assert.equal(text(cursor.keyStart, cursor.keyEnd), `k${headOffset}`)
  assert.equal(text(cursor.valueStart, cursor.valueEnd), `v${headOffset}`)
  buffer.shift()
  return headOffset
}

describe('records of a partition that several tasks write', () => {
  test('go in the order of their time, those of one time in that of their offsets', () => {
    const buffer = bufferAt(0)
    const timestamps = [30, 10, 20, 10, 40]
    feed(buffer, timestamps, 5)
    assert.deepEqual([take(buffer), take(buffer), take(buffer)], [1, 3, 2])
    assert.equal(buffer.nextOffset, 0)
    assert.deepEqual(buffer.kept, { end: 5, timestamp: 20, offset: 2 })
    assert.deepEqual([take(buffer), take(buffer)], [0, 4])
    assert.equal(buffer.nextOffset, 5)
    assert.equal(buffer.kept, undefined)
  })

  test('go at once where they come behind younger ones that went', () => {
    const buffer = bufferAt(0)
    const timestamps = [10, 30, 20, 40]
    feed(buffer, timestamps, 2)
    assert.deepEqual([take(buffer), take(buffer)], [0, 1])
    feed(buffer, timestamps, 2)
    assert.deepEqual([take(buffer), take(buffer)], [2, 3])
    assert.equal(buffer.behind, 1)
  })

  test('are known by whoever takes them over up to where they went: an older one shows at once, and hides what follows', () => {
    const buffer = bufferAt(1, { end: 3, timestamp: 30, offset: 2 })
    const timestamps = [10, 40, 30, 20, 50]
    feed(buffer, timestamps, 4)
    assert.equal(buffer.wentUpTo, 30)
    assert.equal(buffer.headTimestamp, 20)
    assert.equal(buffer.taken, 3)
    assert.deepEqual([take(buffer), take(buffer), take(buffer)], [3, 1, 4])
    assert.equal(buffer.wentUpTo, 50)
  })

  test('are taken in as far as there is room, and the others once there is some again', () => {
    const buffer = bufferAt(0, undefined, 200)
    feed(buffer, [40, 30, 20, 10], 4)
    assert.equal(buffer.isFull, true)
    assert.deepEqual([take(buffer), take(buffer), take(buffer), take(buffer)].sort(), [0, 1, 2, 3])
    assert.equal(buffer.isFull, false)
  })

  test('go once each, whoever takes over from whichever commit: 300 seeds', () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = new Random(seed)
      const timestamps = Array.from({ length: 60 }, (_, i) => 10 * i + random.int(200))
      const went: number[] = []
      let committed: { offset: number; kept: Kept | undefined; went: number } = { offset: 0, kept: undefined, went: 0 }
      let buffer = bufferAt(0)
      while (went.length < timestamps.length) {
        const chance = random.next()
        if (chance < 0.4) feed(buffer, timestamps, 1 + random.int(8))
        else if (chance < 0.8) for (let n = random.int(6); n > 0 && buffer.hasHead; n--) went.push(take(buffer))
        else if (chance < 0.93) committed = { offset: buffer.nextOffset, kept: buffer.kept, went: went.length }
        else {
          went.length = committed.went
          buffer = bufferAt(committed.offset, committed.kept)
        }
      }
      assert.deepEqual(
        [...went].sort((a, b) => a - b),
        timestamps.map((_, i) => i),
        `seed ${seed}`,
      )
    }
  })
})
