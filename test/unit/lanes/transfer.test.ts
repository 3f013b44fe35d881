import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { TransferReader, TransferWriter } from '../../../src/lanes/transfer.ts'

const bytes = fc.uint8Array({ maxLength: 300 })
const nullable = fc.option(bytes)
const index = fc.integer({ min: -1, max: 2 ** 31 - 1 })
const entry = fc.record({
  source: index,
  task: index,
  topic: index,
  partition: index,
  offset: fc.maxSafeInteger(),
  timestamp: fc.maxSafeInteger(),
  watermark: fc.oneof(fc.maxSafeInteger(), fc.constant(Number.NEGATIVE_INFINITY)),
  key: nullable,
  value: nullable,
  headers: bytes,
})

/** A range in the middle of other bytes, as records lie in their batches. */
function within(data: Uint8Array | null): { from: Uint8Array | null; start: number; end: number } {
  if (data === null) return { from: null, start: -1, end: -1 }
  const from = new Uint8Array(data.length + 7).fill(0xee)
  from.set(data, 3)
  return { from, start: 3, end: 3 + data.length }
}

describe('records on their way between threads', () => {
  test('come out as they went in, however large the buffer was meant to be', () => {
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 30 }), fc.constantFrom(64, 1024, 65_536), (entries, capacity) => {
        const writer = new TransferWriter(capacity)
        for (const e of entries) {
          const [key, value, headers] = [within(e.key), within(e.value), within(e.headers)]
          writer.append(
            e.source,
            e.task,
            e.topic,
            e.partition,
            e.offset,
            e.timestamp,
            0,
            key.from,
            key.start,
            key.end,
            value.from,
            value.start,
            value.end,
            headers.from,
            headers.start,
            headers.end,
          )
          writer.setLastWatermark(e.watermark)
        }
        assert.equal(writer.records, entries.length)
        const { length } = writer
        const reader = new TransferReader(structuredClone(writer.take()), length)
        assert.equal(writer.records, 0)
        for (const e of entries) {
          assert.ok(reader.next())
          const { source, task, originTopic, originPartition, offset, timestamp, watermark } = reader
          assert.deepEqual(
            [source, task, originTopic, originPartition, offset, timestamp, watermark],
            [e.source, e.task, e.topic, e.partition, e.offset, e.timestamp, e.watermark],
          )
          const part = (start: number, end: number): Uint8Array | null =>
            start < 0 ? null : new Uint8Array(reader.bytes.slice(start, end))
          assert.deepEqual(part(reader.keyStart, reader.keyEnd), e.key)
          assert.deepEqual(part(reader.valueStart, reader.valueEnd), e.value)
          assert.deepEqual(part(reader.headersStart, reader.headersEnd), e.headers)
        }
        assert.equal(reader.next(), false)
      }),
      { numRuns: 200 },
    )
  })
})
