/** Avro as bare bytes. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import avsc from 'avsc'
import fc from '../../../support/properties.ts'
import { EngineError, serdes } from '../../../../src/index.ts'
import { SerdeError } from '../../../../src/serde/serde.ts'
import { cases } from '../registry/evolution.ts'
import { samples } from '../registry/schemas.ts'

const record = (...fields: object[]) => ({ type: 'record', name: 'R', fields })
const a = { name: 'a', type: 'int' }
const duration = { type: 'fixed', name: 'D', size: 12, logicalType: 'duration' }

describe('Avro without a registry', () => {
  for (const { name, schema, values } of samples) {
    test(`goes there and back: ${name}`, () => {
      const serde = serdes.avro<unknown>(schema as object)
      fc.assert(
        fc.property(values, (value) => {
          const bytes = serde.serialize(value)
          assert.deepEqual(serde.deserialize(bytes), value)
          const lies = Buffer.concat([Buffer.of(7), bytes, Buffer.of(7)])
          assert.deepEqual(serde.deserializeFrom?.(lies, 1, 1 + bytes.length), value)
          assert.deepEqual(serde.json?.read(JSON.parse(JSON.stringify(serde.json.write(value)))), value, 'as JSON')
        }),
        { numRuns: 20 },
      )
    })
  }

  test('has the bytes of the format and nothing else', () => {
    const schema = record(a, { name: 'note', type: ['null', 'string'] })
    const value = { a: 5, note: 'x' }
    const expected = avsc.Type.forSchema(schema as avsc.Schema).toBuffer(value)
    assert.deepEqual(Buffer.from(serdes.avro<typeof value>(schema).serialize(value)), expected)
  })

  for (const { name, writer, reader, value, gives, refused } of cases) {
    test(`what others write with another schema: ${name}`, () => {
      const bytes = serdes.avro<unknown>(writer as object).serialize(value)
      const serde = () => serdes.avro<unknown>(reader as object, { writer: writer as object })
      if (refused === undefined) assert.deepEqual(serde().deserialize(bytes), gives)
      else
        assert.throws(
          serde,
          (error) => EngineError.is(error) && error.code === 'TOPOLOGY_INVALID' && refused.test(error.message),
        )
    })
  }

  test('longs are numbers that are exact, or bigints', () => {
    const schema = record({ name: 'n', type: 'long' })
    const bigints = serdes.avro<{ n: bigint }>(schema, { longs: 'bigint' })
    const bytes = bigints.serialize({ n: 2n ** 60n })
    assert.deepEqual(bigints.deserialize(bytes), { n: 2n ** 60n })
    assert.throws(() => serdes.avro(schema).deserialize(bytes), SerdeError)
  })

  test('longs of all 64 bits become the nearest double or float', () => {
    for (const n of [-(2n ** 62n), 2n ** 60n + 12_345n, -(2n ** 53n) - 1n, 2n ** 63n - 1n, -(2n ** 63n), -1n, 0n]) {
      const bytes = serdes.avro<bigint>('long', { longs: 'bigint' }).serialize(n)
      assert.equal(serdes.avro<number>('double', { writer: 'long' }).deserialize(bytes), Number(n))
      assert.equal(serdes.avro<number>('float', { writer: 'long' }).deserialize(bytes), Math.fround(Number(n)))
    }
  })

  test('what would not come back is refused', () => {
    const refused: ReadonlyArray<readonly [schema: unknown, value: unknown, why: RegExp]> = [
      ['string', 'x\ud800', /half of a surrogate pair/],
      ['string', `${'x'.repeat(100)}\udfff`, /half of a surrogate pair/],
      [{ type: 'map', values: 'int' }, { '\ud800': 1 }, /half of a surrogate pair/],
      [{ type: 'map', values: 'int' }, new Map([['a', 1]]), /no object with its names as members/],
      ['float', 1e300, /more than a float holds/],
      [{ type: 'int', logicalType: 'date' }, '2026-02-30', /logical:date/],
      [{ type: 'int', logicalType: 'date' }, '2026', /logical:date/],
      [{ type: 'enum', name: 'E', symbols: ['A'] }, 'constructor', /no E/],
      [duration, { months: 1, days: 1.5, milliseconds: 0 }, /logical:duration/],
      [duration, { months: 1 }, /logical:duration/],
    ]
    for (const [type, value, why] of refused) {
      const serde = serdes.avro<unknown>(record({ name: 'v', type }))
      assert.throws(
        () => serde.serialize({ v: value }),
        (error) => error instanceof SerdeError && why.test(error.message),
      )
    }
    assert.equal(serdes.avro<number>('float').deserialize(serdes.avro<number>('float').serialize(Infinity)), Infinity)
  })

  test('texts that are no UTF-8 are refused, and replacements that were written are read', () => {
    const serde = serdes.avro<string>('string')
    assert.equal(serde.deserialize(serde.serialize('a\ufffdb')), 'a\ufffdb')
    assert.throws(() => serde.deserialize(Buffer.of(4, 0xff, 0xfe)), /no UTF-8|not UTF-8/)
  })

  test('bytes are taken as a `Uint8Array` too', () => {
    const bytes = Uint8Array.of(1, 2)
    for (const type of ['bytes', ['null', 'bytes'], { type: 'fixed', name: 'Two', size: 2 }]) {
      const serde = serdes.avro<{ v: Uint8Array }>(record({ name: 'v', type }))
      assert.deepEqual(serde.deserialize(serde.serialize({ v: bytes })), { v: Buffer.from(bytes) })
    }
  })

  test('a value with the name of its branch is an object like any other', () => {
    const serde = serdes.avro<unknown>(['int', 'double'])
    assert.deepEqual(serde.deserialize(serde.serialize({ double: 5 })), { double: 5 })
  })

  test('what does not fit is an error of the serde, and names the field', () => {
    const serde = serdes.avro<unknown>(record(a))
    assert.throws(() => serde.serialize({ a: 'x' }), { name: 'SerdeError', message: /a is no int/ })
    assert.throws(() => serde.deserialize(Buffer.of(2, 2)), { name: 'SerdeError', message: /has 2 bytes/ })
    assert.throws(() => serde.deserialize(Buffer.alloc(0)), SerdeError)
  })
})
