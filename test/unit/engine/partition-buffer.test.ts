/** What of a partition is read on from where its log goes on: it is committed like what was read. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { noHeaders } from '../../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../../src/broker/wire/record-batch.ts'
import { PartitionBuffer } from '../../../src/engine/input/partition-buffer.ts'

const isolation = 'read_committed'

function bufferAt(offset: number): PartitionBuffer {
  const nothing = (): void => undefined
  const failed = (_: PartitionBuffer, error: unknown): void => {
    throw error
  }
  const options = { topic: 't', partition: 0, offset, capacity: 10, maxPollRecords: 10, isolation } as const
  return new PartitionBuffer(options, { arrived: nothing, polled: nothing, hungry: nothing, failed })
}

/** So many records where the buffer stands. */
function feed(buffer: PartitionBuffer, count: number): void {
  const builder = new RecordBatchBuilder()
  for (let i = 0; i < count; i++) builder.append(1000 + i, null, null, noHeaders)
  const batch = builder.finish()
  new DataView(batch.buffer, batch.byteOffset).setBigInt64(0, BigInt(buffer.position))
  buffer.append(batch, [])
}

/** Where a commit would stand after each record. */
function taken(buffer: PartitionBuffer): number[] {
  const offsets: number[] = []
  while (buffer.hasHead) {
    buffer.shift()
    offsets.push(buffer.nextOffset)
  }
  return offsets
}

describe('a log that has lost what comes next', () => {
  test('goes on elsewhere at once, where nothing is buffered', () => {
    const buffer = bufferAt(5)
    buffer.skipTo(50)
    assert.deepEqual([buffer.nextOffset, buffer.position], [50, 50])
  })

  test('goes on elsewhere behind what is buffered, also where nothing comes there', () => {
    const buffer = bufferAt(5)
    feed(buffer, 2)
    buffer.skipTo(50)
    assert.equal(buffer.nextOffset, 5)
    assert.deepEqual(taken(buffer), [6, 50])
  })

  test('goes on at the first record there, before that was taken', () => {
    const buffer = bufferAt(5)
    feed(buffer, 2)
    buffer.skipTo(50)
    feed(buffer, 2)
    assert.deepEqual(taken(buffer), [6, 50, 51, 52])
  })

  test('goes on before where it stood, where it ends there', () => {
    const buffer = bufferAt(500)
    feed(buffer, 1)
    buffer.skipTo(50)
    assert.deepEqual(taken(buffer), [50])
  })
})
