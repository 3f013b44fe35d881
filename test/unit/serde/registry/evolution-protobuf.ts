/** What the Protobuf guide for changing a message type says of a message that was written with another version of it. */
import { create } from '@bufbuild/protobuf'
import {
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt'

export interface ProtobufCase {
  readonly name: string
  readonly writer: FileDescriptorProto
  readonly reader: FileDescriptorProto
  readonly value: object
  /** What is read, as an object without the names of types. */
  readonly gives?: object
  readonly refused?: RegExp
}

type Field = { name: string; number: number; type: Type; [more: string]: unknown }

const field = (name: string, number: number, type: Type, more: object = {}): Field => ({
  name,
  jsonName: name,
  number,
  type,
  label: Label.OPTIONAL,
  ...more,
})
const list = { label: Label.REPEATED }
const id = field('id', 1, Type.STRING)

function file(
  fields: Field[],
  more: { message?: object; syntax?: string; name?: string; with?: object } = {},
): FileDescriptorProto {
  const { message, syntax = 'proto3', name = 'M' } = more
  return create(FileDescriptorProtoSchema, {
    name: 'e.proto',
    package: 'e',
    syntax,
    messageType: [
      { name, field: fields, ...message },
      { name: 'Part', field: [field('n', 1, Type.INT32)] },
    ],
    enumType: [
      {
        name: 'E',
        value: [
          { name: 'ZERO', number: 0 },
          { name: 'ONE', number: 1 },
        ],
      },
    ],
    ...more.with,
  } as never)
}

const changed = (name: string, from: Type, to: Type, value: unknown, gives: unknown): ProtobufCase => ({
  name,
  writer: file([field('v', 1, from, from === Type.ENUM ? { typeName: '.e.E' } : {})]),
  reader: file([field('v', 1, to, to === Type.ENUM ? { typeName: '.e.E' } : {})]),
  value: { v: value },
  gives: { v: gives },
})
const forbidden = (name: string, from: Field, to: Field, value: object, refused: RegExp): ProtobufCase => ({
  name,
  writer: file([from]),
  reader: file([to]),
  value,
  refused,
})
const part = { typeName: '.e.Part' }
const pick = { oneofIndex: 0 }
const oneof = { message: { oneofDecl: [{ name: 'pick' }] } }

export const protobufCases: readonly ProtobufCase[] = [
  {
    name: 'a field is added',
    writer: file([id]),
    reader: file([id, field('n', 2, Type.INT32)]),
    value: { id: 'a' },
    gives: { id: 'a', n: 0 },
  },
  {
    name: 'a field is removed, and its number reserved',
    writer: file([id, field('n', 2, Type.INT32)]),
    reader: file([id], { message: { reservedRange: [{ start: 2, end: 3 }], reservedName: ['n'] } }),
    value: { id: 'a', n: 5 },
    gives: { id: 'a' },
  },
  {
    name: 'a field is renamed',
    writer: file([field('old', 1, Type.STRING)]),
    reader: file([field('fresh', 1, Type.STRING)]),
    value: { old: 'x' },
    gives: { fresh: 'x' },
  },
  changed('int32 becomes int64', Type.INT32, Type.INT64, -5, -5n),
  changed('int64 becomes int32', Type.INT64, Type.INT32, 7n, 7),
  changed('bool becomes int32', Type.BOOL, Type.INT32, true, 1),
  changed('an enum becomes a number', Type.ENUM, Type.INT32, 1, 1),
  changed('a number becomes an enum, which keeps what it does not know', Type.INT32, Type.ENUM, 9, 9),
  changed('string becomes bytes', Type.STRING, Type.BYTES, 'hi', Uint8Array.of(104, 105)),
  changed('bytes become string', Type.BYTES, Type.STRING, Uint8Array.of(104, 105), 'hi'),
  changed('sint32 becomes sint64', Type.SINT32, Type.SINT64, -5, -5n),
  changed('fixed32 becomes sfixed32', Type.FIXED32, Type.SFIXED32, 5, 5),
  {
    name: 'a single text becomes a list',
    writer: file([field('v', 1, Type.STRING)]),
    reader: file([field('v', 1, Type.STRING, list)]),
    value: { v: 'x' },
    gives: { v: ['x'] },
  },
  {
    name: 'a field moves into a oneof of its own',
    writer: file([field('v', 1, Type.STRING)]),
    reader: file([field('v', 1, Type.STRING, pick)], oneof),
    value: { v: 'x' },
    gives: { pick: { case: 'v', value: 'x' } },
  },
  {
    name: 'a message becomes bytes',
    writer: file([field('v', 1, Type.MESSAGE, part)]),
    reader: file([field('v', 1, Type.BYTES)]),
    value: { v: { n: 5 } },
    gives: { v: Uint8Array.of(8, 5) },
  },
  forbidden(
    'string becomes int32',
    field('v', 1, Type.STRING),
    field('v', 1, Type.INT32),
    { v: 'x' },
    /the field e\.M\.v is a string .* an int32/,
  ),
  forbidden(
    'int32 becomes sint32',
    field('v', 1, Type.INT32),
    field('v', 1, Type.SINT32),
    { v: 1 },
    /e\.M\.v is an int32 .* a sint32/,
  ),
  forbidden(
    'int32 becomes fixed32',
    field('v', 1, Type.INT32),
    field('v', 1, Type.FIXED32),
    { v: 1 },
    /e\.M\.v is an int32 .* a fixed32/,
  ),
  forbidden(
    'double becomes float',
    field('v', 1, Type.DOUBLE),
    field('v', 1, Type.FLOAT),
    { v: 1 },
    /e\.M\.v is a double .* a float/,
  ),
  forbidden(
    'a message becomes a text',
    field('v', 1, Type.MESSAGE, part),
    field('v', 1, Type.STRING),
    { v: {} },
    /e\.M\.v is an? \.?e\.Part .* a string/,
  ),
  forbidden(
    'a packed list becomes a single number',
    field('v', 1, Type.INT32, list),
    field('v', 1, Type.INT32),
    { v: [1, 2] },
    /e\.M\.v is a packed list of numbers/,
  ),
  forbidden(
    'a field takes another number',
    field('v', 1, Type.STRING),
    field('v', 2, Type.STRING),
    { v: 'x' },
    /e\.M\.v has the number 1 .* and 2 .*never changes/,
  ),
  {
    name: 'a field takes a reserved number',
    writer: file([id], { message: { reservedRange: [{ start: 4, end: 6 }] } }),
    reader: file([id, field('n', 5, Type.INT32)]),
    value: { id: 'a' },
    refused: /the field e\.M\.n has the number 5, which what was written reserves/,
  },
  {
    name: 'a field takes a reserved name',
    writer: file([id], { message: { reservedName: ['n'] } }),
    reader: file([id, field('n', 5, Type.INT32)]),
    value: { id: 'a' },
    refused: /e\.M\.n has a name that what was written reserves/,
  },
  {
    name: 'two fields move into one oneof',
    writer: file([field('a', 1, Type.STRING), field('b', 2, Type.STRING)]),
    reader: file([field('a', 1, Type.STRING, pick), field('b', 2, Type.STRING, pick)], oneof),
    value: { a: 'x', b: 'y' },
    refused: /e\.M\.pick is a oneof of a and b, which may both be set/,
  },
  {
    name: 'a required field is added',
    writer: file([id], { syntax: 'proto2' }),
    reader: file([id, field('n', 2, Type.INT32, { label: Label.REQUIRED })], { syntax: 'proto2' }),
    value: { id: 'a' },
    refused: /e\.M\.n is required in what reads and not in what was written/,
  },
  {
    name: 'the message takes another name',
    writer: file([id]),
    reader: file([id], { name: 'Other', with: { messageType: [{ name: 'Other', field: [id] }] } }),
    value: { id: 'a' },
    refused: /declares no e\.Other/,
  },
  {
    name: 'a field of a message inside changes its type',
    writer: file([field('v', 1, Type.MESSAGE, part)]),
    reader: file([field('v', 1, Type.MESSAGE, part)], {
      with: {
        messageType: [
          { name: 'M', field: [field('v', 1, Type.MESSAGE, part)] },
          { name: 'Part', field: [field('n', 1, Type.STRING)] },
        ],
      },
    }),
    value: { v: { n: 5 } },
    refused: /the field e\.Part\.n is an int32 .* a string/,
  },
]
