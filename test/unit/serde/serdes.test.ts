import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { type Serde, SerdeError, serdes } from '../../../src/serde/index.ts'

const uuid = '6f1ed002-ab59-4a7c-8e10-7d5f0d3c2b1a'
const safe = fc.maxSafeInteger().map((n) => n + 0)

/** A serde, values it takes, and values it refuses. */
const cases: ReadonlyArray<readonly [Serde<never>, fc.Arbitrary<unknown>, readonly unknown[]]> = [
  [serdes.string as Serde<never>, fc.string({ unit: 'grapheme' }), [1, {}, '\ud800', undefined]],
  [
    serdes.json() as Serde<never>,
    fc.jsonValue({ noUnicodeString: false }),
    [undefined, () => 1, 1n, Number.NaN, -Infinity],
  ],
  [serdes.int32 as Serde<never>, fc.integer(), [1.5, 2 ** 31, -(2 ** 31) - 1, '1', Number.NaN, -0]],
  [serdes.int64 as Serde<never>, fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), [2n ** 63n, 1, '1']],
  [serdes.long as Serde<never>, safe, [0.5, 2 ** 53, 1n, '1', Number.NaN]],
  [serdes.float64 as Serde<never>, fc.double(), ['1', 1n, null]],
  [serdes.boolean as Serde<never>, fc.boolean(), [0, 'true']],
  [serdes.bytes as Serde<never>, fc.uint8Array(), ['a', [1]]],
  [serdes.uuid as Serde<never>, fc.uuid(), ['', 'x'.repeat(36), 1]],
]

describe('the serdes', () => {
  for (const [serde, values, refused] of cases) {
    test(`${serde.name} gives back what it was given`, () => {
      fc.assert(
        fc.property(values, (value) => {
          const bytes = serde.serialize(value as never)
          const back = serde.deserialize(bytes)
          const among = Buffer.concat([Buffer.from('"{1'), bytes, Buffer.from('2}"')])
          if (serde.deserializeFrom) assert.deepEqual(serde.deserializeFrom(among, 3, 3 + bytes.length), back)
          if (serde.name === 'json') assert.equal(JSON.stringify(back), JSON.stringify(value))
          else if (value instanceof Uint8Array) assert.deepEqual(Buffer.from(back), Buffer.from(value))
          else assert.ok(Object.is(back, value), `${String(value)} → ${String(back)}`)
          if (serde.isPlain?.(value as never)) assert.ok(Object.is(back, value))
        }),
      )
    })

    test(`${serde.name} refuses with a sentence what it cannot encode, and never calls it plain`, () => {
      for (const value of refused) {
        assert.throws(
          () => serde.serialize(value as never),
          (error) => error instanceof SerdeError && /\.$/.test(error.message),
        )
        assert.ok(!serde.isPlain?.(value as never), String(value))
      }
    })

    test(`${serde.name} reads any bytes or refuses them with a SerdeError`, () => {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
          const before = bytes.slice()
          try {
            serde.deserialize(bytes)
          } catch (error) {
            assert.ok(error instanceof SerdeError, String(error))
          }
          assert.deepEqual(bytes, before, 'the bytes are left as they are')
        }),
      )
    })
  }

  test('numbers lie in the bytes as Kafka’s own serializers put them', () => {
    const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
    assert.equal(hex(serdes.int32.serialize(-2)), 'fffffffe')
    assert.equal(hex(serdes.long.serialize(1)), '0000000000000001')
    assert.equal(hex(serdes.count.serialize(-1)), 'ffffffffffffffff')
    assert.equal(hex(serdes.long.serialize(Number.MAX_SAFE_INTEGER)), '001fffffffffffff')
    assert.equal(hex(serdes.int64.serialize(-(2n ** 63n))), '8000000000000000')
    assert.equal(hex(serdes.float64.serialize(1)), '3ff0000000000000')
    assert.equal(hex(serdes.uuid.serialize(uuid.toUpperCase())), Buffer.from(uuid).toString('hex'))
  })

  test('no number is one key, however it came about', () => {
    const zero = Number('0')
    for (const none of [Number.NaN, zero / zero, -(zero / zero), Math.sqrt(-1 - zero), Infinity * zero])
      assert.equal(Buffer.from(serdes.float64.serialize(none)).toString('hex'), '7ff8000000000000')
    assert.ok(Number.isNaN(serdes.float64.deserialize(serdes.float64.serialize(zero / zero))))
  })

  test('a long and an int64 of the same number are the same bytes', () => {
    fc.assert(fc.property(safe, (n) => assert.deepEqual(serdes.long.serialize(n), serdes.int64.serialize(BigInt(n)))))
  })

  test('a long that a number cannot hold exactly is refused rather than rounded', () => {
    assert.throws(() => serdes.long.deserialize(serdes.int64.serialize(2n ** 53n + 1n)), /int64/)
  })

  test('text that shows the replacement character is told from broken text', () => {
    assert.equal(serdes.string.deserialize(Buffer.from('a\ufffdb')), 'a\ufffdb')
    assert.throws(() => serdes.string.deserialize(Uint8Array.of(0x61, 0xff)), SerdeError)
    assert.equal(serdes.string.deserialize(Buffer.from('\ufeffa')), '\ufeffa')
  })

  test('bytes are copied both ways', () => {
    const value = Uint8Array.of(1, 2)
    const encoded = serdes.bytes.serialize(value)
    value[0] = 9
    assert.equal(encoded[0], 1)
    const read = serdes.bytes.deserialize(encoded)
    encoded[0] = 7
    assert.equal(read[0], 1)
  })
})

describe('keys of windows', () => {
  const key = fc.record({
    key: fc.string({ unit: 'grapheme' }),
    start: fc.nat(2 ** 41),
    length: fc.nat(1000),
  })

  test('of time windows carry the key and the start', () => {
    const serde = serdes.windowed(serdes.string, 60)
    fc.assert(
      fc.property(key, ({ key, start }) => {
        const bytes = serde.serialize({ key, start, end: start + 60 })
        assert.equal(bytes.length, Buffer.byteLength(key) + 8)
        assert.deepEqual(serde.deserialize(bytes), { key, start, end: start + 60 })
      }),
    )
    assert.throws(() => serde.deserialize(new Uint8Array(7)), SerdeError)
  })

  test('are refused where a time is no whole number', () => {
    const window = serdes.windowed(serdes.string, 60)
    const session = serdes.sessionWindowed(serdes.string)
    for (const start of [1.5, Number.NaN, 2 ** 60]) {
      assert.throws(() => window.serialize({ key: 'a', start, end: 70 }), SerdeError)
      assert.throws(() => session.serialize({ key: 'a', start, end: 70 }), SerdeError)
      assert.throws(() => session.serialize({ key: 'a', start: 0, end: start }), SerdeError)
    }
  })

  test('of sessions carry the key, the end and the start', () => {
    const serde = serdes.sessionWindowed(serdes.long)
    const bytes = serde.serialize({ key: 1, start: 2, end: 3 })
    assert.equal(Buffer.from(bytes).toString('hex'), '000000000000000100000000000000030000000000000002')
    assert.deepEqual(serde.deserialize(bytes), { key: 1, start: 2, end: 3 })
    assert.throws(() => serde.deserialize(new Uint8Array(15)), SerdeError)
  })
})

describe('JSON with a schema', () => {
  const schema = (validate: (value: unknown) => unknown) =>
    ({ '~standard': { version: 1, vendor: 'test', validate } }) as never

  test('reads what the schema makes of it', () => {
    const serde = serdes.json<number>(schema((value) => ({ value: Number(value) + 1 })))
    assert.equal(serde.deserialize(Buffer.from('"41"')), 42)
    assert.equal(Buffer.from(serde.serialize(42)).toString(), '42')
  })

  test('names the first issues with their paths', () => {
    const issues = [
      { message: 'must be text', path: ['a', { key: 0 }] },
      { message: 'no' },
      { message: 'x' },
      { message: 'y' },
    ]
    const serde = serdes.json<never>(schema(() => ({ issues })))
    assert.throws(() => serde.deserialize(Buffer.from('{}')), /a\.0: must be text; no; x and 1 more/)
  })

  test('refuses a schema that answers later, without an unhandled rejection', async () => {
    const serde = serdes.json<never>(schema(() => Promise.reject(new TypeError('later'))))
    assert.throws(() => serde.deserialize(Buffer.from('{}')), /synchronous/)
    await new Promise((resolve) => setImmediate(resolve))
  })
})
