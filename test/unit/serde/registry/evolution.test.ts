/** Versions of schemas: what is read is what the specification says, and what cannot be read is refused at the start. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { create, createFileRegistry, type DescMessage, type Message } from '@bufbuild/protobuf'
import { type FileDescriptorProto, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import fc from '../../../support/properties.ts'
import { EngineError } from '../../../../src/base/errors.ts'
import { systemClock } from '../../../../src/base/clock.ts'
import { systemTimers } from '../../../../src/base/timers.ts'
import { RegistryClient } from '../../../../src/serde/registry/client.ts'
import { SchemaHub } from '../../../../src/serde/registry/hub.ts'
import { avro, EmbeddedRegistry, jsonSchema, protobuf } from '../../../../src/serde/registry/index.ts'
import { protobufProblems } from '../../../../src/serde/registry/protobuf/proto-compatibility.ts'
import { parseProto } from '../../../../src/serde/registry/protobuf/proto-schema.ts'
import { protoText } from '../../../../src/serde/registry/protobuf/proto-text.ts'
import type { Serde } from '../../../../src/serde/serde.ts'
import { connectSerde } from '../../../../src/testing/embedded-schemas.ts'
import { types } from '../plain/proto-arbitrary.ts'
import { cases as avroCases } from './evolution.ts'
import { jsonCases } from './evolution-json.ts'
import { protobufCases } from './evolution-protobuf.ts'

function openRegistry(): EmbeddedRegistry {
  const registry = new EmbeddedRegistry()
  registry.handle({ method: 'PUT', path: '/config', body: { compatibility: 'NONE' } })
  return registry
}

function bound<T>(serde: Serde<T>): Serde<T> {
  return serde.forTopic?.('topic', 'value') as Serde<T>
}

function connected<T>(registry: EmbeddedRegistry, serde: Serde<T>): Serde<T> {
  const own = bound(serde)
  connectSerde(own as Serde<unknown>, registry)
  return own
}

/** What the start of an application says that reads the topic with the serde. */
async function startWith(registry: EmbeddedRegistry, serde: Serde<never>): Promise<void> {
  const hub = new SchemaHub({
    client: new RegistryClient(registry.call),
    shownUrl: 'http://registry',
    registersAll: false,
    memory: undefined,
    remember: () => undefined,
    giveUpAfterMs: 1000,
    againAfterMs: 1000,
    clock: systemClock,
    timers: systemTimers,
    log: () => undefined,
  })
  await hub.prepare(bound(serde).schemas?.needs(false, 'the stream of topic') ?? [])
}

async function isRefused(registry: EmbeddedRegistry, serde: Serde<never>, reason: RegExp): Promise<void> {
  await assert.rejects(
    startWith(registry, serde),
    (error) =>
      EngineError.is(error) &&
      error.code === 'SCHEMA_REFUSED' &&
      /the stream of topic cannot read what is written under topic-value/.test(error.message) &&
      reason.test(error.message),
  )
}

/** The first message of the file. */
function typeOf(file: FileDescriptorProto): DescMessage {
  const files = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] }))
  return files.getMessage(`e.${file.messageType[0]?.name}`) as DescMessage
}

function withoutTypes(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  if (Array.isArray(value)) return value.map(withoutTypes)
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]) => (name.startsWith('$') ? [] : [[name, withoutTypes(each)]])),
  )
}

test('there are 30 cases of each format, or nearly', () => {
  assert.ok(avroCases.length >= 30)
  assert.ok(protobufCases.length >= 24)
  assert.ok(jsonCases.length >= 24)
})

describe('Avro, at the start', () => {
  for (const { name, writer, reader, value, refused } of avroCases) {
    test(name, async () => {
      const registry = openRegistry()
      connected(registry, avro(writer as object)).serialize(value)
      if (refused === undefined) await startWith(registry, avro(reader as object))
      else await isRefused(registry, avro(reader as object), refused)
    })
  }
})

describe('Protobuf', () => {
  for (const { name, writer, reader, value, gives, refused } of protobufCases) {
    test(name, async () => {
      const registry = openRegistry()
      const bytes = connected(registry, protobuf(typeOf(writer))).serialize(value as Message)
      const own = protobuf(typeOf(reader))
      if (refused !== undefined) return isRefused(registry, own as Serde<never>, refused)
      await startWith(registry, own as Serde<never>)
      const serde = connected(registry, own)
      const read = serde.deserialize(bytes)
      assert.deepEqual(withoutTypes(read), gives)
      // What the reader does not know is not lost.
      if (name.includes('removed'))
        assert.deepEqual(Buffer.from(serde.serialize(read)).subarray(5), Buffer.from(bytes).subarray(5))
    })
  }

  test('a text that is made of any type is understood, and any type reads itself', () => {
    fc.assert(
      fc.property(types, ({ desc, older }) => {
        const [own, less] = [desc, older].map((each) => parseProto(protoText(each.file.proto))) as [never, never]
        assert.deepEqual(protobufProblems(own, own), [])
        const message = parseProto(protoText(desc.file.proto)).messages.get('t.M')
        assert.deepEqual(
          message?.fields.map(({ name, number }) => [name, number]).sort(),
          desc.fields.map(({ name, number }) => [name, number]).sort(),
        )
        if (desc.file.proto.syntax !== 'proto2') assert.deepEqual(protobufProblems(own, less), [])
        assert.deepEqual(protobufProblems(less, own), [])
      }),
      { numRuns: 60 },
    )
  })

  test('a text with all that a file may hold is understood', () => {
    const kind = 'enum'
    const text = `// a file
      edition = "2023"; package a.b;
      import public "x.proto"; option (my.option) = { a: 1; b { c: 2 } };
      message M { option deprecated = true; extensions 100 to max;
        reserved 2, 9 to 11, 40 to max; reserved "foo", 'bar';
        oneof pick { option (o) = true; string a = 3 [deprecated = true, (x) = { y: [1, 2] }]; Inner b = 4; }
        map<string, .a.b.M.Inner> inner = 5; repeated int32 list = 6 [packed = false];
        message Inner { ${kind} E { option allow_alias = true; ZERO = 0 [(x) = "}"]; reserved 5; } E e = 1; }
        extend Foo { optional int32 z = 7; } }
      service S { rpc Do (M) returns (stream M) { option (http) = { get: "/v1" }; } }`
    const { messages, enums, outermost, isProto2 } = parseProto(text)
    const message = messages.get('a.b.M')
    assert.deepEqual([outermost, [...enums], isProto2], [['a.b.M'], ['a.b.M.Inner.E'], false])
    assert.deepEqual(message?.reservedNames, ['foo', 'bar'])
    assert.deepEqual(message?.reservedNumbers, [
      [2, 2],
      [9, 11],
      [40, 536_870_911],
    ])
    assert.deepEqual(
      message?.fields.map(({ name, number, oneof }) => [name, number, oneof]),
      [
        ['a', 3, 'pick'],
        ['b', 4, 'pick'],
        ['inner', 5, undefined],
        ['list', 6, undefined],
      ],
    )
    assert.throws(() => parseProto('message M { string a = ; }'), /has no number/)
    assert.throws(() => parseProto('message M { '), /ends in the middle/)
  })
})

describe('JSON Schema', () => {
  for (const { name, writer, reader, value, refused } of jsonCases) {
    test(name, async () => {
      const registry = openRegistry()
      const bytes = connected(registry, jsonSchema(writer)).serialize(value)
      const read = (): unknown => connected(registry, jsonSchema(reader)).deserialize(bytes)
      if (refused === undefined) {
        await startWith(registry, jsonSchema(reader))
        assert.deepEqual(read(), value)
        return
      }
      await isRefused(registry, jsonSchema(reader), refused)
      // What is not checked is read.
      await startWith(registry, jsonSchema(reader, { validate: 'write' }))
      assert.throws(read, { name: 'SerdeError' })
    })
  }
})

describe('the embedded registry', () => {
  test('holds new versions of every format to the rules of their subject', () => {
    const registry = new EmbeddedRegistry()
    for (const { writer, reader, refused } of protobufCases) {
      if (refused === undefined) continue
      registry.handle({ method: 'DELETE', path: '/subjects/p' })
      registry.register('p', protoText(writer), 'PROTOBUF')
      assert.throws(() => registry.register('p', protoText(reader), 'PROTOBUF'), refused)
    }
    for (const { writer, reader, refused } of jsonCases) {
      if (refused === undefined) continue
      registry.handle({ method: 'DELETE', path: '/subjects/j' })
      registry.register('j', writer, 'JSON')
      assert.throws(() => registry.register('j', reader, 'JSON'), refused)
    }
    assert.throws(() => registry.register('x', 'message {', 'PROTOBUF'), /Invalid schema/)
  })
})
