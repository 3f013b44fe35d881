/** JSON Schema over the embedded registry. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EngineError } from '../../../../src/base/errors.ts'
import { EmbeddedRegistry, type JsonSchemaOptions, jsonSchema } from '../../../../src/serde/registry/index.ts'
import { type Serde, SerdeError } from '../../../../src/serde/serde.ts'
import { connectSerde } from '../../../../src/testing/embedded-schemas.ts'

function connected(registry: EmbeddedRegistry, schema?: object, options?: JsonSchemaOptions): Serde<unknown> {
  const serde = (jsonSchema(schema, options).forTopic as (topic: string, part: 'value') => Serde<unknown>)(
    'topic',
    'value',
  )
  connectSerde(serde, registry)
  return serde
}

const order = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Order',
  type: 'object',
  required: ['id', 'amount'],
  properties: { id: { type: 'string' }, amount: { type: 'number', minimum: 0 }, address: { $ref: 'address.json' } },
}
const references = { 'address.json': { type: 'object', required: ['city'], properties: { city: { type: 'string' } } } }

describe('JSON Schema', () => {
  test('checks what is read and written, references too, and names the place', () => {
    const registry = new EmbeddedRegistry()
    const serde = connected(registry, order, { references })
    const value = { id: 'a', amount: 2, address: { city: 'Bern' } }
    const bytes = serde.serialize(value)
    assert.deepEqual(serde.deserialize(bytes), value)
    assert.equal(Buffer.from(bytes.subarray(5)).toString(), JSON.stringify(value))
    assert.throws(() => serde.serialize({ ...value, amount: -1 }), /written .* amount must be >= 0/)
    assert.throws(() => serde.serialize({ ...value, address: {} }), /address must have required property 'city'/)
    const wrong = Buffer.concat([bytes.subarray(0, 5), Buffer.from('{"id":1,"amount":2}')])
    assert.throws(() => serde.deserialize(wrong), /read .* id must be string/)
    assert.deepEqual(registry.handle({ method: 'GET', path: '/subjects' }).body, ['address.json', 'topic-value'])
  })

  test('takes the newest schema of the subject where it has none', () => {
    const registry = new EmbeddedRegistry()
    registry.register('topic-value', { type: 'object', required: ['n'] }, 'JSON')
    const serde = connected(registry)
    assert.deepEqual(serde.deserialize(serde.serialize({ n: 1 })), { n: 1 })
    assert.throws(() => serde.serialize({}), /must have required property 'n'/)
  })

  test('knows the newer drafts, and checks nothing where it is told so', () => {
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'array',
      prefixItems: [{ type: 'string' }],
    }
    assert.throws(() => connected(new EmbeddedRegistry(), schema).serialize([1]), /0 must be string/)
    const never = connected(new EmbeddedRegistry(), schema, { validate: 'never' })
    assert.deepEqual(never.deserialize(never.serialize([1])), [1])
  })

  test('finds references that are relative to its own name', () => {
    const place = { type: 'object', properties: { country: { $ref: 'country.json' } } }
    for (const $id of [undefined, 'http://acme.com/address.json']) {
      const schema = { ...order, $id: 'http://acme.com/order.json' }
      const address = { ...place, ...($id && { $id }) }
      const options = { references: { 'country.json': { type: 'string' }, 'address.json': address } }
      const serde = connected(new EmbeddedRegistry(), schema, options)
      const value = { id: 'a', amount: 2, address: { country: 'CH' } }
      assert.deepEqual(serde.deserialize(serde.serialize(value)), value)
      assert.throws(() => serde.serialize({ ...value, address: { country: 1 } }), /address.country must be string/)
    }
  })

  test('refuses a number that JSON has not, which would come back as null', () => {
    const serde = connected(new EmbeddedRegistry(), order, { references })
    for (const amount of [Number.NaN, Number.POSITIVE_INFINITY])
      assert.throws(() => serde.serialize({ id: 'a', amount }), /amount must be number/)
  })

  test('refuses a schema that would answer later', () => {
    const later = { $async: true, type: 'object', required: ['n'] }
    assert.throws(
      () => jsonSchema(later),
      (error) => EngineError.is(error) && error.code === 'TOPOLOGY_INVALID' && /\$async/.test(error.message),
    )
    const registry = new EmbeddedRegistry()
    registry.register('topic-value', later, 'JSON')
    const serde = connected(registry)
    assert.throws(() => serde.deserialize(Buffer.from('\0\0\0\0\x01{}')), SerdeError)
  })

  test('a schema that is none is refused where it is given', () => {
    assert.throws(
      () => jsonSchema({ type: 'strin' }),
      (error) => EngineError.is(error) && error.code === 'TOPOLOGY_INVALID',
    )
  })
})
