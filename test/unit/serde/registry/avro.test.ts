/** Avro by itself: every type there and back, and what becomes of records of other schemas. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../../support/properties.ts'
import { EngineError } from '../../../../src/base/errors.ts'
import { avroProblems } from '../../../../src/serde/registry/avro/avro-compatibility.ts'
import type { AvroNode } from '../../../../src/serde/registry/avro/avro-schema.ts'
import { type AvroOptions, type AvroSchemaInput, avro, EmbeddedRegistry } from '../../../../src/serde/registry/index.ts'
import { type Serde, SerdeError } from '../../../../src/serde/serde.ts'
import { connectSerde } from '../../../../src/testing/embedded-schemas.ts'
import { cases } from './evolution.ts'
import { samples } from './schemas.ts'

function connected<T = unknown>(
  registry: EmbeddedRegistry,
  schema?: AvroSchemaInput | AvroSchemaInput[],
  options?: AvroOptions,
): Serde<T> {
  const serde = (avro<T>(schema, options).forTopic as (topic: string, part: 'value') => Serde<T>)('topic', 'value')
  connectSerde(serde as Serde<unknown>, registry)
  return serde
}

/** Levels are for other tests: here anything may stand beside anything. */
function openRegistry(): EmbeddedRegistry {
  const registry = new EmbeddedRegistry()
  registry.handle({ method: 'PUT', path: '/config', body: { compatibility: 'NONE' } })
  return registry
}

describe('Avro, there and back', () => {
  for (const { name, schema, values } of samples) {
    test(name, () => {
      const serde = connected(openRegistry(), schema as object)
      const around = Buffer.from('other records')
      fc.assert(
        fc.property(values, (value) => {
          const bytes = serde.serialize(value)
          assert.deepEqual(Buffer.from(serde.serializeTransient?.(value) as Uint8Array), Buffer.from(bytes))
          const lies = Buffer.concat([around, bytes, around])
          const read = serde.deserializeFrom?.(lies, around.length, around.length + bytes.length)
          assert.deepEqual(read, value)
          assert.deepEqual(serde.json?.read(JSON.parse(JSON.stringify(serde.json.write(value)))), value, 'as JSON')
        }),
        { numRuns: 60 },
      )
    })
  }

  test('longs as bigints hold all 64 bits, and milliseconds stay numbers', () => {
    const schema = {
      type: 'record',
      name: 'R',
      fields: [
        { name: 'n', type: 'long' },
        { name: 'at', type: { type: 'long', logicalType: 'timestamp-millis' } },
      ],
    }
    const serde = connected(openRegistry(), schema, { longs: 'bigint' })
    for (const n of [0n, -1n, 2n ** 63n - 1n, -(2n ** 63n)]) {
      const value = { n, at: 1_700_000_000_000 }
      assert.deepEqual(serde.deserialize(serde.serialize(value)), value)
    }
    const asNumbers = connected(openRegistry(), schema)
    assert.throws(() => asNumbers.deserialize(serde.serialize({ n: 2n ** 60n, at: 0 })), SerdeError)
  })

  test('records larger than any buffer', () => {
    const serde = connected<{ text: string }>(openRegistry(), {
      type: 'record',
      name: 'R',
      fields: [{ name: 'text', type: 'string' }],
    })
    for (const length of [400, 508, 5000, 8191, 100_000]) {
      const value = { text: 'x'.repeat(length) }
      const brief = Buffer.from(serde.serializeTransient?.(value) as Uint8Array)
      assert.deepEqual(serde.deserialize(brief), value)
      assert.deepEqual(serde.deserialize(serde.serialize(value)), value)
    }
  })

  test('bytes kept from one record are not those of the next', () => {
    const serde = connected<{ n: number }>(openRegistry(), {
      type: 'record',
      name: 'R',
      fields: [{ name: 'n', type: 'int' }],
    })
    const kept = Array.from({ length: 5000 }, (_, n) => serde.serialize({ n }))
    assert.deepEqual(
      kept.map((bytes) => serde.deserialize(bytes).n),
      Array.from(kept.keys()),
    )
  })

  test('several kinds of records in one topic', () => {
    const kind = (name: string, field: string) => ({
      type: 'record',
      name,
      namespace: 'com.acme',
      fields: [{ name: field, type: 'int' }],
    })
    const registry = openRegistry()
    const serde = connected(registry, [kind('Paid', 'amount'), kind('Sent', 'boxes')])
    for (const value of [{ 'com.acme.Paid': { amount: 3 } }, { 'com.acme.Sent': { boxes: 2 } }])
      assert.deepEqual(serde.deserialize(serde.serialize(value)), value)
    assert.deepEqual(registry.handle({ method: 'GET', path: '/subjects' }).body, [
      'topic-com.acme.Paid',
      'topic-com.acme.Sent',
    ])
    const onlyPaid = connected(registry, [kind('Paid', 'amount'), kind('Other', 'x')])
    assert.throws(
      () => onlyPaid.deserialize(serde.serialize({ 'com.acme.Sent': { boxes: 2 } })),
      /is a com\.acme\.Sent/,
    )
  })

  test('several kinds of records that hold the same type', () => {
    const money = { type: 'record', name: 'Money', fields: [{ name: 'units', type: 'int' }] }
    const kind = (name: string) => ({ type: 'record', name, fields: [{ name: 'price', type: money }] })
    const serde = connected(openRegistry(), [kind('Paid'), kind('Sent')])
    for (const value of [{ Paid: { price: { units: 3 } } }, { Sent: { price: { units: 2 } } }])
      assert.deepEqual(serde.deserialize(serde.serialize(value)), value)
  })

  test('the newest schema may refer to what older ones held themselves', () => {
    const money = { type: 'record', name: 'Money', fields: [{ name: 'units', type: 'int' }] }
    const order = (...fields: object[]) => ({ type: 'record', name: 'Order', fields })
    const registry = openRegistry()
    const older = connected(registry, order({ name: 'price', type: money }))
    const bytes = older.serialize({ price: { units: 5 } })
    registry.register('money', money)
    const newer = order({ name: 'price', type: 'Money' }, { name: 'boxes', type: 'int', default: 1 })
    const references = [{ name: 'Money', subject: 'money', version: 1 }]
    const body = { schema: JSON.stringify(newer), references }
    assert.equal(registry.handle({ method: 'POST', path: '/subjects/topic-value/versions', body }).status, 200)
    assert.deepEqual(connected(registry).deserialize(bytes), { price: { units: 5 }, boxes: 1 })
  })

  test('the writer may have given defaults that are none', () => {
    const registry = openRegistry()
    const field = (type: unknown) => [{ name: 'note', type, default: null }]
    const id = registry.register('topic-value', { type: 'record', name: 'R', fields: field(['string', 'null']) })
    const serde = connected(registry, { type: 'record', name: 'R', fields: field(['null', 'string']) })
    assert.deepEqual(serde.deserialize(Buffer.from([0, 0, 0, 0, id, 0, 2, 120])), { note: 'x' })
  })

  test('a reader without a schema takes the newest of the subject', () => {
    const registry = openRegistry()
    const older = { type: 'record', name: 'R', fields: [{ name: 'a', type: 'int' }] }
    const newer = { ...older, fields: [...older.fields, { name: 'b', type: 'string', default: 'none' }] }
    const bytes = connected(registry, older).serialize({ a: 1 })
    registry.register('topic-value', newer)
    assert.deepEqual(connected(registry).deserialize(bytes), { a: 1, b: 'none' })
  })
})

describe('Avro that is not right', () => {
  const schema = {
    type: 'record',
    name: 'R',
    fields: [
      { name: 'a', type: 'int' },
      { name: 'b', type: 'string' },
    ],
  }
  test('says what it is', () => {
    const serde = connected(openRegistry(), schema)
    const bytes = serde.serialize({ a: 1, b: 'text' })
    assert.throws(() => serde.deserialize(Buffer.from('{"a":1}')), /begin with 123/)
    assert.throws(() => serde.deserialize(bytes.subarray(0, -2)), /asks for more/)
    assert.throws(() => serde.deserialize(Buffer.concat([bytes, Buffer.alloc(3)])), /has 9 bytes/)
    assert.throws(() => serde.serialize({ a: 'one', b: 'text' }), /a is no int/)
    assert.throws(() => serde.serialize({ a: 1 }), /b is no string/)
    const elsewhere = Buffer.from(bytes)
    elsewhere.writeUInt32BE(99, 1)
    assert.throws(() => serde.deserialize(elsewhere), /schema 99 is not in the registry/)
  })

  test('bytes at random give values or errors of the serde, and nothing else', () => {
    const serde = connected(openRegistry(), samples.at(-1)?.schema as object)
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (payload) => {
        try {
          serde.deserialize(Buffer.concat([Buffer.of(0, 0, 0, 0, 1), payload]))
        } catch (error) {
          assert.ok(error instanceof SerdeError, String(error))
        }
      }),
      { numRuns: 500 },
    )
  })

  test('a schema that is none is refused where it is given', () => {
    for (const wrong of [
      '{',
      { type: 'record', name: 'R' },
      { type: 'record', name: 'R', fields: [{ name: 'a', type: 'strin' }] },
    ])
      assert.throws(
        () => avro(wrong),
        (error) => EngineError.is(error) && error.code === 'TOPOLOGY_INVALID',
      )
  })
})

describe('evolution', () => {
  test(`there are ${cases.length} cases`, () => assert.ok(cases.length >= 30))
  for (const { name, writer, reader, value, gives, refused } of cases) {
    test(name, () => {
      const registry = openRegistry()
      const bytes = connected(registry, writer as object).serialize(value)
      const problems = avroProblems(reader as AvroNode, writer as AvroNode)
      if (refused === undefined) {
        assert.deepEqual(problems, [])
        assert.deepEqual(connected(registry, reader as object).deserialize(bytes), gives)
      } else {
        assert.match(problems.join('; '), refused)
        assert.throws(
          () => connected(registry, reader as object).deserialize(bytes),
          (error) => error instanceof SerdeError && refused.test(error.message),
        )
      }
    })
  }
})
