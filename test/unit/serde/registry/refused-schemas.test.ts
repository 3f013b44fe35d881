/** What an embedded registry refuses as no schema, with an earlier version under the subject and without. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EngineError } from '../../../../src/index.ts'
import { EmbeddedRegistry } from '../../../../src/serde/registry/index.ts'
import type { RegistryResponse } from '../../../../src/serde/registry/transport.ts'

type Format = 'AVRO' | 'JSON' | 'PROTOBUF'

const earlier = {
  AVRO: '{"type":"record","name":"P","fields":[{"name":"id","type":"string"}]}',
  JSON: '{"type":"object","properties":{"id":{"type":"string"}}}',
  PROTOBUF: 'syntax = "proto3"; message P { string id = 1; }',
}

const record = (fields: unknown): string => JSON.stringify({ type: 'record', name: 'P', fields })

const none: ReadonlyArray<readonly [Format, string, RegExp]> = [
  ['AVRO', '5', /: the schema is 5, which is no type\.$/],
  ['AVRO', '[]', /: the schema is a union of nothing\.$/],
  ['AVRO', '{}', /: the schema has no type\.$/],
  ['AVRO', '{"type":5}', /: the type of the schema is 5, which is no type\.$/],
  ['AVRO', '{"type":"array"}', /: what the array holds in the schema is null, which is no type\.$/],
  ['AVRO', '{"type":"enum","name":"E"}', /: the enum E has no symbols\.$/],
  ['AVRO', '{"type":"enum","name":"E","symbols":[]}', /: the enum E has no symbols\.$/],
  ['AVRO', '{"type":"record","fields":[]}', /: the schema is of the type record and has no name\.$/],
  ['AVRO', record(5), /: the schema is a record without a list of fields\.$/],
  ['AVRO', record([5]), /: field 0 of P has no name\.$/],
  ['AVRO', record([{ name: 'a' }]), /: field 0 of P has no type\.$/],
  [
    'AVRO',
    record([{ name: 'a', type: ['null', 7] }]),
    /: branch 1 of the type of the field a is 7, which is no type\.$/,
  ],
  [
    'AVRO',
    '{"type":"record","name":"a-b","fields":[]}',
    /: the schema, of the type record, is called "a-b", and names in/,
  ],
  [
    'AVRO',
    '{"type":"fixed","name":"F","namespace":"a.1b","size":1}',
    /: the namespace of F is "a\.1b", and names in Avro/,
  ],
  [
    'AVRO',
    '{"type":"enum","name":"E","symbols":["ON","of f"]}',
    /: a symbol of the enum E is "of f", and names in Avro/,
  ],
  ['AVRO', record([{ name: 'a b', type: 'int' }]), /: field 0 of P is called "a b", and names in Avro/],
  ['AVRO', record([{ name: 'a', type: 'elsewhere' }]), /: undefined type name: elsewhere\.$/],
  [
    'AVRO',
    record([
      { name: 'a', type: 'int' },
      { name: 'a', type: 'int' },
    ]),
    /: duplicate field name/,
  ],
  ['JSON', '5', /: a JSON Schema is an object, true or false, not 5\.$/],
  ['JSON', '[]', /: a JSON Schema is an object, true or false, not \[\]\.$/],
  ['JSON', '{"type":5}', /: type must be equal to one of the allowed values\.$/],
  ['JSON', '{"properties":5}', /: properties must be object\.$/],
  ['PROTOBUF', 'junk', /: it is neither the text of a \.proto file nor its descriptor as base64\.$/],
  ['PROTOBUF', '', /: it is neither the text of a \.proto file nor its descriptor as base64\.$/],
]

/** Those that a registry takes, though not every library does. */
const fine: ReadonlyArray<readonly [Format, string]> = [
  ['AVRO', '"string"'],
  ['AVRO', 'string'],
  ['AVRO', '["null","string"]'],
  ['AVRO', record([{ name: 'id', type: 'string', default: 5 }])],
  ['JSON', 'true'],
  ['JSON', '{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","id":"x"}'],
  ['JSON', '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}'],
  ['JSON', '{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"other.json"}}}'],
  ['PROTOBUF', 'syntax = "proto3"; enum E { A = 0; }'],
]

function post(registry: EmbeddedRegistry, path: string, schemaType: Format, schema: string, references: unknown = []) {
  const body = { schema, schemaType, references }
  return registry.handle({ method: 'POST', path, body }) as RegistryResponse & { body: Record<string, unknown> }
}

describe('an embedded registry', () => {
  for (const hasEarlier of [true, false]) {
    for (const [format, text, sentence] of none) {
      test(`refuses ${format} ${text || 'without text'} ${hasEarlier ? 'behind an earlier version' : 'as the first version'}`, () => {
        const registry = new EmbeddedRegistry()
        if (hasEarlier) registry.register('s', earlier[format], format)
        for (const path of ['/subjects/s/versions', '/subjects/s', '/compatibility/subjects/s/versions/latest']) {
          const { status, body } = post(registry, path, format, text)
          assert.deepEqual([status, body.error_code], [422, 42201], path)
          assert.match(String(body.message), sentence)
        }
        assert.throws(
          () => registry.register('s', text, format),
          (error) => EngineError.is(error) && error.code === 'SCHEMA_REFUSED' && sentence.test(error.message),
        )
        assert.equal(registry.contents().schemas.length, hasEarlier ? 1 : 0)
      })
    }
  }

  test('takes what is a schema, whatever libraries think of its defaults and drafts', () => {
    for (const [format, text] of fine) {
      const { status, body } = post(new EmbeddedRegistry(), '/subjects/s/versions', format, text)
      assert.equal(status, 200, `${format} ${text}: ${body.message}`)
    }
  })

  test('knows types by the schemas that one refers to, and refuses references that lead nowhere', () => {
    const registry = new EmbeddedRegistry()
    registry.register('p', earlier.AVRO)
    const text = JSON.stringify({ type: 'record', name: 'Q', fields: [{ name: 'p', type: 'P' }] })
    const path = '/subjects/q/versions'
    assert.equal(post(registry, path, 'AVRO', text).status, 422)
    assert.equal(post(registry, path, 'AVRO', text, [{ name: 'P', subject: 'p', version: 1 }]).status, 200)
    for (const references of [[{ name: 'P', subject: 'nowhere', version: 1 }], [5], 'P']) {
      const { status, body } = post(registry, path, 'AVRO', text, references)
      assert.deepEqual([status, body.error_code], [422, 42201])
    }
  })
})
