import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../../support/properties.ts'
import { crc32c, replacePrefix } from '../../../../src/broker/wire/crc32c.ts'
import { readBigInt64, readInt64, writeBigInt64, writeInt64 } from '../../../../src/broker/wire/integers.ts'
import { VarintReader, varintSize, writeVarint } from '../../../../src/broker/wire/varint.ts'

function bitByBit(bytes: Uint8Array): number {
  let crc = -1
  for (const byte of bytes) {
    crc ^= byte
    for (let k = 0; k < 8; k++) crc = crc & 1 ? 0x82f63b78 ^ (crc >>> 1) : crc >>> 1
  }
  return ~crc >>> 0
}

/** The format as Kafka's documentation has it, in whole numbers of any size. */
function zigzag(value: bigint): number[] {
  let rest = (value << 1n) ^ (value >> 63n)
  const bytes: number[] = []
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128)
  return [...bytes, Number(rest)]
}

describe('numbers on the wire', () => {
  test('the checksum is CRC-32C, at every length', () => {
    assert.equal(crc32c(new TextEncoder().encode('123456789')), 0xe3069283)
    const bytes = Uint8Array.from({ length: 700_000 }, (_, i) => (i * 7 + (i >> 8)) & 0xff)
    for (const length of [0, 1, 15, 16, 95, 96, 97, 255, 4096, 65_537, 600_000]) {
      assert.equal(crc32c(bytes, 3, 3 + length), bitByBit(bytes.subarray(3, 3 + length)), `length ${length}`)
    }
  })

  test('the checksum of changed first bytes follows without the rest', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 40, maxLength: 40 }),
        fc.uint8Array({ minLength: 40, maxLength: 40 }),
        fc.uint8Array({ maxLength: 3000 }),
        (before, after, rest) => {
          const whole = (head: Uint8Array): number => crc32c(new Uint8Array(Buffer.concat([head, rest])))
          assert.equal(replacePrefix(whole(before), crc32c(before), crc32c(after), rest.length), whole(after))
        },
      ),
    )
  })

  test('varints are read as they were written, and take what was foretold', () => {
    const numbers = fc.oneof(fc.integer(), fc.maxSafeInteger(), fc.integer({ min: -70, max: 70 }))
    fc.assert(
      fc.property(fc.array(numbers), (values) => {
        const bytes = new Uint8Array(values.length * 10)
        let at = 0
        for (const value of values) {
          const end = writeVarint(bytes, at, value)
          assert.equal(end - at, varintSize(value))
          assert.deepEqual([...bytes.subarray(at, end)], zigzag(BigInt(value)))
          at = end
        }
        const reader = new VarintReader(bytes, 0, at)
        // -0 is written as 0.
        for (const value of values) assert.equal(reader.next(), value + 0)
        assert.equal(reader.next(), Number.NaN)
      }),
    )
  })

  test('a varint that does not end is not a number', () => {
    for (const length of [1, 4, 5, 9, 12]) {
      assert.equal(new VarintReader(new Uint8Array(length).fill(0x80)).next(), Number.NaN)
    }
  })

  test('64-bit integers keep their value', () => {
    const bytes = new Uint8Array(8)
    fc.assert(
      fc.property(fc.maxSafeInteger(), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (number, wide) => {
        writeInt64(bytes, 0, number)
        assert.equal(readInt64(bytes, 0), number)
        writeBigInt64(bytes, 0, wide)
        assert.equal(readBigInt64(bytes, 0), wide)
      }),
    )
  })
})
