/** Protobuf over the embedded registry: messages of every shape, their places in a file, what evolves. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { create, createFileRegistry, type DescMessage, type Message, toBinary } from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { EmbeddedRegistry, protobuf } from '../../../../src/serde/registry/index.ts'
import { ProtoNames, readIndexes, writeIndexes } from '../../../../src/serde/registry/protobuf/proto-names.ts'
import { protoText } from '../../../../src/serde/registry/protobuf/proto-text.ts'
import type { Serde } from '../../../../src/serde/serde.ts'
import { connectSerde } from '../../../../src/testing/embedded-schemas.ts'
import { files } from './proto-files.ts'

const types = createFileRegistry(create(FileDescriptorSetSchema, { file: files }))

function typeOf(name: string): DescMessage {
  const found = types.getMessage(name)
  assert.ok(found, `there is a message ${name}`)
  return found
}

function connected(registry: EmbeddedRegistry, ...names: string[]): Serde<Message> {
  const serde = protobuf(names.map(typeOf)) as unknown as Serde<Message>
  const bound = (serde.forTopic as (topic: string, part: 'value') => Serde<Message>)('topic', 'value')
  connectSerde(bound as Serde<unknown>, registry)
  return bound
}

const order = {
  id: 'a1',
  amount: { units: 12n, currency: 'EUR' },
  lines: [
    { sku: 'x', count: 2 },
    { sku: 'y', count: 1 },
  ],
  tags: { a: 1, b: 2 },
  paid: { case: 'card', value: '4711' },
  state: 2,
  raw: Uint8Array.of(1, 2, 3),
}

describe('Protobuf', () => {
  test('goes there and back with nested messages, maps, oneofs, enums and imports', () => {
    const registry = new EmbeddedRegistry()
    const serde = connected(registry, 'com.acme.Order')
    const message = create(typeOf('com.acme.Order'), order as never)
    const bytes = serde.serialize(message)
    assert.deepEqual(serde.deserialize(bytes), message)
    assert.deepEqual(
      [...bytes.subarray(0, 6)],
      [0, 0, 0, 0, 2, 0],
      'the import has the id 1, and the message is the first',
    )
    assert.deepEqual(serde.json?.read(JSON.parse(JSON.stringify(serde.json.write(message)))), message)
    assert.deepEqual(registry.handle({ method: 'GET', path: '/subjects' }).body, [
      'com/acme/money.proto',
      'topic-value',
    ])
  })

  test('what is kept of a message does not lie in lent bytes', () => {
    const serde = connected(new EmbeddedRegistry(), 'com.acme.Order')
    const bytes = Buffer.from(serde.serialize(create(typeOf('com.acme.Order'), order as never)))
    const read = serde.deserialize(bytes) as unknown as { raw: Uint8Array }
    bytes.fill(0)
    assert.deepEqual([...read.raw], [1, 2, 3])
  })

  test('names a nested message by its indexes', () => {
    const serde = connected(new EmbeddedRegistry(), 'com.acme.Order.Line')
    const bytes = serde.serialize(create(typeOf('com.acme.Order.Line'), { sku: 'x', count: 3 } as never))
    assert.deepEqual([...bytes.subarray(5, 8)], [4, 0, 0], 'two indexes, 0 and 0, zig-zag')
    assert.equal((serde.deserialize(bytes) as unknown as { count: number }).count, 3)
  })

  test('reads several messages of a topic by their names, and no others', () => {
    const registry = new EmbeddedRegistry()
    const both = connected(registry, 'com.acme.Order', 'com.acme.Refund')
    const refund = create(typeOf('com.acme.Refund'), { id: 'r' } as never)
    assert.equal(both.deserialize(both.serialize(refund)).$typeName, 'com.acme.Refund')
    assert.equal(both.deserialize(both.serialize(create(typeOf('com.acme.Order')))).$typeName, 'com.acme.Order')
    const orders = connected(registry, 'com.acme.Order')
    assert.throws(() => orders.deserialize(both.serialize(refund)), /is a com\.acme\.Refund/)
    assert.throws(() => orders.serialize(refund), /writes no com\.acme\.Refund/)
  })

  test('keeps fields that it does not know', () => {
    const registry = new EmbeddedRegistry()
    const newer = create(typeOf('com.acme.v2.Refund'), { id: 'r', reason: 'late' } as never)
    const id = registry.register(
      'topic-value',
      protoText(typeOf('com.acme.v2.Refund').file.proto).replace('com.acme.v2', 'com.acme'),
      'PROTOBUF',
    )
    const payload = toBinary(typeOf('com.acme.v2.Refund'), newer)
    const serde = connected(registry, 'com.acme.Refund')
    const read = serde.deserialize(Buffer.concat([Buffer.of(0, 0, 0, 0, id, 0), payload]))
    assert.deepEqual(Buffer.from(serde.serialize(read)).subarray(-payload.length), Buffer.from(payload))
  })

  test('indexes of any depth and size come back', () => {
    for (const indexes of [[0], [1], [0, 0], [3, 200, 5], [70_000]]) {
      const bytes = writeIndexes(indexes)
      assert.deepEqual(readIndexes(bytes, 0, bytes.length), { indexes, next: bytes.length })
    }
    assert.deepEqual([...writeIndexes([0])], [0])
    assert.equal(readIndexes(Uint8Array.of(8, 2), 0, 2), undefined)
  })

  test('names are read from text with comments, strings and things that look like messages', () => {
    const kind = 'enum'
    const names = new ProtoNames(`syntax = "proto3"; // message A {
      package a.b; /* message B { */
      option x = "message C {";
      ${kind} E { ZERO = 0; }
      message First { string message = 1; oneof pick { string s = 2; } ${kind} F { Z = 0; } message In { } message Out { } }
      message Second { message Deep { message Deeper {} } }`)
    assert.equal(names.at([0]), 'a.b.First')
    assert.equal(names.at([0, 1]), 'a.b.First.Out')
    assert.equal(names.at([1, 0, 0]), 'a.b.Second.Deep.Deeper')
    assert.equal(names.at([2]), undefined)
  })
})
