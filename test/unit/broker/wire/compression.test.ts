import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import fc from '../../../support/properties.ts'
import { batchHeader } from '../../../../src/broker/wire/batch-header.ts'
import { decompress } from '../../../../src/broker/wire/compression.ts'
import { CorruptBatchError } from '../../../../src/broker/wire/corrupt.ts'
import { decompressLz4 } from '../../../../src/broker/wire/lz4.ts'
import { RecordCursor } from '../../../../src/broker/wire/record-batch.ts'
import { decompressSnappy } from '../../../../src/broker/wire/snappy.ts'

const codecs = ['gzip', 'snappy', 'lz4', 'zstd'] as const
const file = join(import.meta.dirname, 'compressed-batches.json')
const fixtures = JSON.parse(readFileSync(file, 'utf8')) as Record<(typeof codecs)[number], string[]>
const batchOf = (codec: (typeof codecs)[number]): Uint8Array =>
  new Uint8Array(Buffer.from(fixtures[codec].join(''), 'base64'))

describe('compressed batches', () => {
  for (const codec of codecs) {
    test(`a batch that Kafka compressed with ${codec} is read`, () => {
      const bytes = batchOf(codec)
      assert.equal(batchHeader(bytes).compression, codec)
      const cursor = new RecordCursor()
      cursor.reset(bytes, 0, [], 'read_committed')
      for (let i = 0; i < 20; i++) {
        assert.equal(cursor.next(), true)
        const range = (start: number, end: number): string => Buffer.from(cursor.bytes.subarray(start, end)).toString()
        assert.equal(range(cursor.keyStart, cursor.keyEnd), `key-${i}`)
        const value = `value ${i % 7} of the record `.repeat(1 + (i % 5))
        assert.equal(range(cursor.valueStart, cursor.valueEnd), value)
        assert.equal(cursor.timestamp, 1000 + i)
        assert.equal(cursor.headerCount, i % 4 === 0 ? 1 : 0)
      }
      assert.equal(cursor.next(), false)
      assert.equal(cursor.position, 20)
    })

    test(`damaged ${codec} bytes give a CorruptBatchError or bytes, nothing else`, () => {
      const body = batchOf(codec).subarray(61)
      fc.assert(
        fc.property(
          fc.array(fc.tuple(fc.nat(body.length - 1), fc.nat(255)), { maxLength: 4 }),
          fc.nat(body.length),
          (changes, cut) => {
            const bytes = body.slice(0, Math.max(cut, body.length - 40))
            for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value
            try {
              decompress(codec, bytes)
            } catch (error) {
              assert.ok(error instanceof CorruptBatchError, String(error))
            }
          },
        ),
        { numRuns: 500 },
      )
    })
  }

  test('what grows beyond every bound is refused', () => {
    // One literal, then it is repeated for as long as the length bytes say.
    const endless = Uint8Array.of(0x1f, 0x61, 1, 0, ...new Array(2000).fill(255), 0)
    const frame = Uint8Array.of(
      0x04,
      0x22,
      0x4d,
      0x18,
      0x60,
      0x40,
      0x82,
      endless.length & 0xff,
      endless.length >> 8,
      0,
      0,
    )
    assert.throws(() => decompressLz4(new Uint8Array([...frame, ...endless]), 10_000), CorruptBatchError)
    const claims = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 0x61)
    assert.throws(() => decompressSnappy(claims, 10_000), CorruptBatchError)
  })
})
