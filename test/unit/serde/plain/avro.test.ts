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

  test('what does not fit is an error of the serde, and names the field', () => {
    const serde = serdes.avro<unknown>(record(a))
    assert.throws(() => serde.serialize({ a: 'x' }), { name: 'SerdeError', message: /a is no int/ })
    assert.throws(() => serde.deserialize(Buffer.of(2, 2)), { name: 'SerdeError', message: /has 2 bytes/ })
    assert.throws(() => serde.deserialize(Buffer.alloc(0)), SerdeError)
  })
})
