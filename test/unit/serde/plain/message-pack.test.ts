/** MessagePack. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decode, encode } from '@msgpack/msgpack'
import fc from '../../../support/properties.ts'
import { serdes } from '../../../../src/index.ts'
import { SerdeError } from '../../../../src/serde/serde.ts'

const json = fc
  .jsonValue()
  .map((value) => JSON.parse(JSON.stringify(value)) as unknown)
  // No decoder of this format makes a member of this name.
  .filter((value) => !JSON.stringify(value).includes('__proto__'))

describe('MessagePack', () => {
  test('anything of JSON goes there and back, in the bytes of the library', () => {
    const serde = serdes.messagePack<unknown>()
    fc.assert(
      fc.property(json, (value) => {
        const bytes = serde.serialize(value)
        assert.deepEqual(Buffer.from(bytes), Buffer.from(encode(value)))
        const lies = Buffer.concat([Buffer.of(1), bytes, Buffer.of(1)])
        assert.deepEqual(serde.deserializeFrom?.(lies, 1, 1 + bytes.length), value)
        assert.deepEqual(Buffer.from(serde.serializeTransient?.(value) as Uint8Array), Buffer.from(bytes))
      }),
      { numRuns: 300 },
    )
  })

  test('bytes and dates too, and bytes are not those that were lent', () => {
    const serde = serdes.messagePack<{ raw: Uint8Array; at: Date }>()
    const value = { raw: Uint8Array.of(1, 2, 3), at: new Date(1_700_000_000_123) }
    const bytes = Buffer.from(serde.serialize(value))
    const read = serde.deserialize(bytes)
    bytes.fill(0)
    assert.deepEqual(read, value)
  })

  test('a Map or a Set is refused, which would come back empty', () => {
    const serde = serdes.messagePack<unknown>()
    for (const value of [new Map([['a', 1]]), { inside: [new Set([1])] }])
      assert.throws(() => serde.serialize(value), { name: 'SerdeError', message: /this is a (Map|Set)/ })
  })

  test('integers of 64 bits are exact: numbers that others write so, bigints, or refused', () => {
    const longs = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n })
    const numbers = serdes.messagePack<{ list: unknown[] }>()
    const bigints = serdes.messagePack<{ list: unknown[] }>({ longs: 'bigint' })
    fc.assert(
      fc.property(longs, (n) => {
        const bytes = encode({ list: [n] }, { useBigInt64: true })
        assert.deepEqual(bigints.deserialize(bytes), { list: [n] })
        assert.deepEqual(Buffer.from(bigints.serialize({ list: [n] })), Buffer.from(bytes))
        if (Number.isSafeInteger(Number(n))) assert.deepEqual(numbers.deserialize(bytes), { list: [Number(n)] })
        else assert.throws(() => numbers.deserialize(bytes), { name: 'SerdeError', message: /no exact number/ })
      }),
    )
    assert.deepEqual(numbers.deserialize(numbers.serialize({ list: [1.6e12] })), { list: [1.6e12] })
    assert.throws(() => numbers.serialize({ list: [1n] }), SerdeError)
  })

  test('bytes at random give what the library gives, or an error of the serde, and never take more room than they have', () => {
    const serde = serdes.messagePack<unknown>({ longs: 'bigint' })
    const long = fc.constantFrom(
      [0xdd, 0x01, 0xff, 0xff, 0xff],
      [0xdf, 0xff, 0xff, 0xff, 0xff],
      [0xdb, 0xff, 0xff, 0, 0],
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 30 }),
          long.map((list) => Uint8Array.from(list)),
        ),
        (bytes) => {
          try {
            const value = serde.deserialize(bytes)
            assert.deepEqual(value, decode(bytes, { useBigInt64: true }))
          } catch (error) {
            assert.ok(error instanceof SerdeError, String(error))
          }
        },
      ),
      { numRuns: 500 },
    )
    assert.throws(() => serde.deserialize(Buffer.of(0xdd, 0x01, 0xff, 0xff, 0xff)), /Max length exceeded/)
  })
})
