import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { heads, TransferReader, TransferWriter } from '../../../src/lanes/transfer.ts'
import type { Headers } from '../../../src/broker/wire/headers.ts'
import { decodeHeaders, RecordBatchBuilder, RecordCursor } from '../../../src/broker/wire/record-batch.ts'

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

const sizes = fc.constantFrom(64, 1024, 65_536)
const head = fc.constantFrom(...Object.values(heads))

/** A range in the middle of other bytes, as records lie in their batches. */
function within(data: Uint8Array | null): { from: Uint8Array | null; start: number; end: number } {
  if (data === null) return { from: null, start: -1, end: -1 }
  const from = new Uint8Array(data.length + 7).fill(0xee)
  from.set(data, 3)
  return { from, start: 3, end: 3 + data.length }
}

/** Records of a batch as the engine passes them on: by ranges of it. */
const batched = fc.array(
  fc.record({ timestamp: fc.nat(2 ** 40), key: nullable, value: fc.option(fc.uint8Array({ maxLength: 700 })) }),
  { minLength: 1, maxLength: 30 },
)

describe('records on their way between threads', () => {
  test('come out as they went in, however large the buffer was meant to be', () => {
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 30 }), sizes, head, (entries, capacity, head) => {
        const writer = new TransferWriter(capacity, head)
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
            0,
            0,
            5,
          )
          writer.setLast(e.watermark, e.watermark - 1, e.offset)
        }
        assert.equal(writer.records, entries.length)
        const { length } = writer
        const reader = new TransferReader(structuredClone(writer.take()), length, head)
        assert.equal(writer.records, 0)
        let lookedAt = 0
        for (const [i, e] of entries.entries()) {
          assert.equal(reader.isLevel, i === lookedAt)
          // Now and then a few records ahead are looked at.
          for (let few = i % 3; few >= 0 && reader.look(); few--, lookedAt++) {
            const ahead = entries[lookedAt]
            assert.deepEqual([reader.aheadSource, reader.aheadTask], [ahead?.source, ahead?.task])
            const key = reader.aheadKeyStart < 0 ? null : reader.bytes.slice(reader.aheadKeyStart, reader.aheadKeyEnd)
            assert.deepEqual(key && new Uint8Array(key), ahead?.key)
          }
          assert.ok(reader.next())
          const { source, task, originTopic, originPartition, offset, timestamp, watermark } = reader
          assert.deepEqual(
            [source, task, originTopic, originPartition, offset, timestamp, watermark],
            [e.source, e.task, e.topic, e.partition, e.offset, e.timestamp, e.watermark],
          )
          const place = [e.watermark - 1, head === heads.unnumbered ? 0 : e.offset, head === heads.handedOver ? 5 : 0]
          assert.deepEqual([reader.at, reader.seq, reader.sub], place)
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

  test('of a batch come out as they lie in it', () => {
    fc.assert(
      fc.property(batched, fc.boolean(), fc.boolean(), (records, withHeaders, withValue) => {
        const headers: Headers = withHeaders ? [['name', 'value']] : []
        const builder = new RecordBatchBuilder()
        for (const { timestamp, key, value } of records) builder.append(timestamp, key, value, headers)
        const cursor = new RecordCursor()
        cursor.reset(builder.finish(), 0, [], 'read_committed')
        const writer = new TransferWriter(1024)
        const bytes: number[] = []
        while (cursor.next()) bytes.push(writer.appendFrom(cursor, 1, 2, 3, 4, cursor.timestamp, withValue))
        const { length } = writer
        const reader = new TransferReader(writer.take(), length)
        const part = (start: number, end: number): Uint8Array | null =>
          start < 0 ? null : new Uint8Array(reader.bytes.slice(start, end))
        for (const [i, { timestamp, key, value }] of records.entries()) {
          assert.ok(reader.next())
          assert.deepEqual([reader.offset, reader.timestamp, reader.originPartition], [i, timestamp, 4])
          assert.deepEqual(part(reader.keyStart, reader.keyEnd), key)
          // Of a value that does not go along it is left whether there is one; a short one may say that there is none.
          const goes = withValue || (value?.length ?? 0) <= 8
          assert.deepEqual(part(reader.valueStart, reader.valueEnd), goes ? value : value && new Uint8Array(0))
          const ofHeaders = reader.headersEnd - reader.headersStart
          assert.equal(bytes[i], (key?.length ?? 0) + (value?.length ?? 0) + ofHeaders)
          assert.deepEqual(decodeHeaders(reader.bytes, reader.headersStart, reader.headersEnd), headers)
        }
        assert.equal(reader.next(), false)
      }),
    )
  })
})
