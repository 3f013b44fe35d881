import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import fc from '../../../support/properties.ts'
import { batchField, batchHeaderSize, sealBatch } from '../../../../src/broker/wire/batch-header.ts'
import type { Headers } from '../../../../src/broker/wire/headers.ts'
import { writeInt16, writeInt32 } from '../../../../src/broker/wire/integers.ts'
import {
  type AbortedRange,
  batchHeader,
  CorruptBatchError,
  checksumHolds,
  countRecords,
  decodeHeaders,
  encodeHeaders,
  endOfBatches,
  RecordBatchBuilder,
  RecordCursor,
  setBaseOffset,
  stampBatch,
} from '../../../../src/broker/wire/record-batch.ts'

interface Plain {
  readonly timestamp: number
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly headers: Headers
}

const text = (s: string): Uint8Array => new TextEncoder().encode(s)

function build(records: readonly Plain[]): Uint8Array {
  const builder = new RecordBatchBuilder()
  for (const r of records) builder.append(r.timestamp, r.key, r.value, r.headers)
  assert.equal(builder.count, records.length)
  const size = builder.bytes
  const batch = builder.finish()
  assert.equal(batch.length, size)
  assert.equal(batch.buffer.byteLength, size)
  return batch
}

function simple(values: readonly string[], offset = 0): Uint8Array {
  const batch = build(values.map((v) => ({ timestamp: 5, key: null, value: text(v), headers: [] })))
  setBaseOffset(batch, offset)
  return batch
}

function range(cursor: RecordCursor, start: number, end: number): Uint8Array | null {
  return start < 0 ? null : cursor.bytes.slice(start, end)
}

function readAll(
  bytes: Uint8Array,
  from = 0,
  aborted: readonly AbortedRange[] = [],
  isolation: 'read_committed' | 'read_uncommitted' = 'read_committed',
): { records: Array<Plain & { offset: number }>; position: number } {
  const cursor = new RecordCursor()
  cursor.reset(bytes, from, aborted, isolation)
  const records: Array<Plain & { offset: number }> = []
  while (cursor.next()) {
    assert.equal(cursor.position, cursor.offset + 1)
    records.push({
      offset: cursor.offset,
      timestamp: cursor.timestamp,
      key: range(cursor, cursor.keyStart, cursor.keyEnd),
      value: range(cursor, cursor.valueStart, cursor.valueEnd),
      headers: decodeHeaders(cursor.bytes, cursor.headersStart, cursor.headersEnd),
    })
    assert.equal(records.at(-1)?.headers.length, cursor.headerCount)
  }
  assert.equal(cursor.next(), false)
  assert.equal(endOfBatches(bytes, from), cursor.position, 'the heads alone tell the same')
  return { records, position: cursor.position }
}

const values = (bytes: Uint8Array, from?: number, aborted?: readonly AbortedRange[]): string[] =>
  readAll(bytes, from, aborted).records.map((r) => Buffer.from(r.value ?? []).toString())

function concat(...parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts))
}

/** A transactional batch, or with `marker` the batch that ends a transaction. */
function transactional(values: string[], offset: number, producerId: bigint): Uint8Array {
  const batch = simple(values, offset)
  stampBatch(batch, { producerId, producerEpoch: 3, baseSequence: 7, transactional: true })
  return batch
}

function marker(kind: 'commit' | 'abort', offset: number, producerId: bigint): Uint8Array {
  const builder = new RecordBatchBuilder()
  builder.append(9, Uint8Array.of(0, 0, 0, kind === 'commit' ? 1 : 0), new Uint8Array(6), [])
  const batch = builder.finish()
  setBaseOffset(batch, offset)
  stampBatch(batch, { producerId, producerEpoch: 3, baseSequence: -1, transactional: true })
  writeInt16(batch, batchField.attributes, 0x30)
  sealBatch(batch)
  return batch
}

const plainRecord: fc.Arbitrary<Plain> = fc.record({
  timestamp: fc.oneof(fc.nat(), fc.integer({ min: -1, max: 2 ** 45 })),
  key: fc.option(fc.uint8Array({ maxLength: 40 })),
  value: fc.option(fc.uint8Array({ maxLength: 300 })),
  headers: fc.array(
    fc.tuple(
      fc.string(),
      fc.oneof(fc.string({ unit: 'grapheme' }), fc.constant(null), fc.constant(Uint8Array.of(0xff, 0xfe))),
    ),
    { maxLength: 3 },
  ),
})

describe('record batches', () => {
  test('what is built is read back, over several batches', () => {
    fc.assert(
      fc.property(fc.array(fc.array(plainRecord, { minLength: 1, maxLength: 20 }), { maxLength: 5 }), (batches) => {
        let offset = 100
        const bytes = concat(
          ...batches.map((records) => {
            const batch = build(records)
            setBaseOffset(batch, offset)
            offset += records.length
            return batch
          }),
        )
        const read = readAll(bytes, 100)
        assert.deepEqual(
          read.records,
          batches.flat().map((r, i) => ({ ...r, offset: 100 + i })),
        )
        assert.equal(read.position, offset)
        assert.equal(countRecords(bytes), read.records.length)
      }),
    )
  })

  test('records whose lengths take one byte, two, three or four lie side by side', () => {
    const lengths = fc.constantFrom(
      0,
      10,
      40,
      55,
      56,
      57,
      58,
      64,
      300,
      8170,
      8184,
      8185,
      8192,
      70_000,
      1_048_560,
      1_100_000,
    )
    fc.assert(
      fc.property(fc.array(fc.tuple(lengths, fc.nat(255)), { minLength: 1, maxLength: 8 }), (values) => {
        const builder = new RecordBatchBuilder()
        for (const [length, fill] of values) builder.append(1, null, new Uint8Array(length).fill(fill), [])
        const cursor = new RecordCursor()
        cursor.reset(builder.finish(), 0, [], 'read_committed')
        for (const [length, fill] of values) {
          assert.ok(cursor.next())
          const read = cursor.bytes.subarray(cursor.valueStart, cursor.valueEnd)
          assert.equal(read.length, length)
          assert.ok(read.every((byte) => byte === fill))
        }
        assert.equal(cursor.next(), false)
      }),
      { numRuns: 30 },
    )
  })

  test('a builder is reusable and tells what it holds', () => {
    const builder = new RecordBatchBuilder()
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 1000; i++) builder.append(i, text(`k${i}`), text('v'.repeat(i)), [['h', 'x']])
      const header = batchHeader(builder.finish())
      assert.equal(header.recordCount, 1000)
      assert.equal(header.maxTimestamp, 999)
      assert.equal(header.producerId, -1n)
      assert.equal(builder.count, 0)
    }
  })

  test('header bytes taken from one batch go into another as they are', () => {
    const headers: Headers = [
      ['a', 'ä'],
      ['a', null],
      ['b', Uint8Array.of(0xff)],
    ]
    const first = build([{ timestamp: 1, key: null, value: null, headers }])
    const cursor = new RecordCursor()
    cursor.reset(first, 0, [], 'read_committed')
    assert.ok(cursor.next())
    const builder = new RecordBatchBuilder()
    builder.append(1, null, null, cursor.bytes.subarray(cursor.headersStart, cursor.headersEnd))
    assert.deepEqual(builder.finish(), first)
    assert.deepEqual(decodeHeaders(encodeHeaders(headers)), headers)
  })

  test('a stamp sets the identity, its checksum is that of the whole batch, and a second stamp replaces the first', () => {
    for (const length of [0, 10, 5000]) {
      const batch = simple(['v'.repeat(length)])
      for (const stamp of [
        { producerId: 2n ** 40n + 5n, producerEpoch: 32_767, baseSequence: 2 ** 31 - 1, transactional: true },
        { producerId: 1n, producerEpoch: 0, baseSequence: 0, transactional: false },
      ]) {
        stampBatch(batch, stamp)
        assert.ok(checksumHolds(batch, 0, batch.length))
        const { producerId, producerEpoch, baseSequence, transactional } = batchHeader(batch)
        assert.deepEqual({ producerId, producerEpoch, baseSequence, transactional }, stamp)
      }
    }
  })

  test('records below the asked offset are left out, in the middle of a batch too', () => {
    const bytes = concat(simple(['a', 'b', 'c'], 10), simple(['d', 'e'], 13))
    assert.deepEqual(values(bytes, 12), ['c', 'd', 'e'])
    assert.deepEqual(values(bytes, 14), ['e'])
    assert.deepEqual(readAll(bytes, 15), { records: [], position: 15 })
  })

  test('gaps that compaction left are passed: between batches, at the end of one, and where a batch is empty', () => {
    const gapped = simple(['a', 'b'], 10)
    writeInt32(gapped, batchField.lastOffsetDelta, 9)
    sealBatch(gapped)
    const emptied = simple(['x'], 20).slice(0, batchHeaderSize)
    writeInt32(emptied, batchField.length, batchHeaderSize - 12)
    writeInt32(emptied, batchField.recordCount, 0)
    writeInt32(emptied, batchField.lastOffsetDelta, 4)
    sealBatch(emptied)
    assert.deepEqual(
      readAll(concat(gapped, emptied), 5).records.map((r) => r.offset),
      [10, 11],
    )
    assert.equal(readAll(gapped, 5).position, 20)
    assert.equal(readAll(concat(gapped, emptied), 5).position, 25)
    assert.deepEqual(values(concat(gapped, emptied, simple(['z'], 40))), ['a', 'b', 'z'])
  })

  test('a batch cut off at the end ends the walk before it', () => {
    const whole = simple(['a'], 0)
    const rest = simple(['b'], 1)
    for (let cut = 0; cut < rest.length; cut++) {
      assert.deepEqual(values(concat(whole, rest.subarray(0, cut))), ['a'])
    }
  })

  test('markers are no records, and move the position', () => {
    const bytes = concat(transactional(['a'], 0, 4n), marker('commit', 1, 4n))
    assert.deepEqual(values(bytes), ['a'])
    assert.equal(readAll(bytes).position, 2)
    assert.equal(readAll(marker('abort', 7, 4n), 7).position, 8)
  })

  test('aborted transactions are skipped up to their marker, those of other producers are not', () => {
    const bytes = concat(
      transactional(['a1'], 0, 1n),
      transactional(['b1'], 1, 2n),
      transactional(['a2'], 2, 1n),
      marker('abort', 3, 1n),
      transactional(['a3'], 4, 1n),
      marker('commit', 5, 1n),
      simple(['plain'], 6),
      marker('commit', 7, 2n),
    )
    const aborted = [{ producerId: 1n, firstOffset: 0 }]
    assert.deepEqual(values(bytes, 0, aborted), ['b1', 'a3', 'plain'])
    assert.equal(readAll(bytes, 0, aborted).position, 8)
    assert.deepEqual(
      readAll(bytes, 0, aborted, 'read_uncommitted').records.map((r) => Buffer.from(r.value ?? []).toString()),
      ['a1', 'b1', 'a2', 'a3', 'plain'],
    )
  })

  test('a fetch may begin inside an aborted transaction, or on its marker', () => {
    const bytes = concat(transactional(['a2'], 2, 1n), marker('abort', 3, 1n), transactional(['a3'], 4, 1n))
    assert.deepEqual(values(bytes, 2, [{ producerId: 1n, firstOffset: 0 }]), ['a3'])
    assert.deepEqual(
      values(concat(marker('abort', 3, 1n), transactional(['a3'], 4, 1n)), 3, [{ producerId: 1n, firstOffset: 0 }]),
      ['a3'],
    )
  })

  test('two aborted transactions of one producer, listed in any order', () => {
    const bytes = concat(
      transactional(['x'], 0, 1n),
      marker('abort', 1, 1n),
      transactional(['y'], 2, 1n),
      marker('commit', 3, 1n),
      transactional(['z'], 4, 1n),
      marker('abort', 5, 1n),
    )
    const aborted = [
      { producerId: 1n, firstOffset: 4 },
      { producerId: 1n, firstOffset: 0 },
    ]
    assert.deepEqual(values(bytes, 0, aborted), ['y'])
  })

  for (const [id, name, compress] of [
    [1, 'gzip', gzipSync],
    [4, 'zstd', zstdCompressSync],
  ] as const) {
    test(`a batch compressed with ${name} is read`, () => {
      const plain = simple(['a'.repeat(1000), 'b'], 3)
      const body = compress(plain.subarray(batchHeaderSize))
      const batch = concat(plain.subarray(0, batchHeaderSize), body)
      writeInt32(batch, batchField.length, batch.length - 12)
      writeInt16(batch, batchField.attributes, id)
      sealBatch(batch)
      assert.deepEqual(values(concat(batch, simple(['c'], 5))), ['a'.repeat(1000), 'b', 'c'])
    })
  }

  test('a wrong checksum is refused, unless checking is off', () => {
    const wrong = simple(['a'])
    wrong[wrong.length - 2] = (wrong[wrong.length - 2] as number) ^ 1
    assert.throws(() => endOfBatches(wrong, 0), CorruptBatchError)
    const batch = simple(['abc'])
    batch[batch.length - 2] = (batch[batch.length - 2] as number) ^ 1
    assert.throws(() => readAll(batch), { name: 'CorruptBatchError', code: 'CORRUPT_MESSAGE' })
    const cursor = new RecordCursor({ verifyChecksums: false })
    cursor.reset(batch, 0, [], 'read_committed')
    assert.equal(cursor.next(), true)
  })

  test('old message formats are refused by name', () => {
    const batch = simple(['abc'])
    batch[batchField.magic] = 1
    assert.throws(() => readAll(batch), { code: 'UNSUPPORTED_FOR_MESSAGE_FORMAT' })
  })

  test('damaged bytes give a CorruptBatchError or records, nothing else', () => {
    const good = concat(
      build([
        { timestamp: 1, key: text('key'), value: text('value'), headers: [['h', 'x']] },
        { timestamp: 2, key: null, value: text('v'.repeat(200)), headers: [] },
      ]),
      marker('abort', 2, 1n),
    )
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { maxLength: 6 }),
        fc.nat(good.length),
        fc.boolean(),
        (changes, cut, verifyChecksums) => {
          const bytes = good.slice(0, Math.max(cut, good.length - 3))
          for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value
          const cursor = new RecordCursor({ verifyChecksums })
          cursor.reset(bytes, 0, [{ producerId: 1n, firstOffset: 0 }], 'read_committed')
          try {
            for (let n = 0; cursor.next(); n++) {
              assert.ok(n < 10_000)
              assert.ok(cursor.valueEnd <= bytes.length && cursor.keyEnd <= bytes.length)
              decodeHeaders(cursor.bytes, cursor.headersStart, cursor.headersEnd)
            }
          } catch (error) {
            assert.ok(error instanceof CorruptBatchError, String(error))
          }
        },
      ),
      { numRuns: 3000 },
    )
  })
})
