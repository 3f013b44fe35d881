/** Message types of Protobuf with fields of every kind, and values of them. */
import { create, createFileRegistry, type DescMessage, type Message } from '@bufbuild/protobuf'
import {
  FieldDescriptorProto_Type as Type,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
} from '@bufbuild/protobuf/wkt'
import fc from '../../support/properties.ts'
import { contents } from '../../unit/serde/plain/proto-arbitrary.ts'
import { files, many, one } from '../../unit/serde/registry/proto-files.ts'

export interface ProtoSample {
  readonly name: string
  readonly types: readonly DescMessage[]
  readonly values: fc.Arbitrary<unknown>
  /** Written in front of those at random. */
  readonly edges: readonly unknown[]
}

const integers: ReadonlyArray<readonly [name: string, type: Type, least: number | bigint, most: number | bigint]> = [
  ['int32', Type.INT32, -(2 ** 31), 2 ** 31 - 1],
  ['sint32', Type.SINT32, -(2 ** 31), 2 ** 31 - 1],
  ['sfixed32', Type.SFIXED32, -(2 ** 31), 2 ** 31 - 1],
  ['uint32', Type.UINT32, 0, 2 ** 32 - 1],
  ['fixed32', Type.FIXED32, 0, 2 ** 32 - 1],
  ['int64', Type.INT64, -(2n ** 63n), 2n ** 63n - 1n],
  ['sint64', Type.SINT64, -(2n ** 63n), 2n ** 63n - 1n],
  ['sfixed64', Type.SFIXED64, -(2n ** 63n), 2n ** 63n - 1n],
  ['uint64', Type.UINT64, 0n, 2n ** 64n - 1n],
  ['fixed64', Type.FIXED64, 0n, 2n ** 64n - 1n],
]
const scalars: ReadonlyArray<readonly [name: string, type: Type]> = [
  ...integers.map(([name, type]) => [name, type] as const),
  ['double', Type.DOUBLE],
  ['float', Type.FLOAT],
  ['bool', Type.BOOL],
  ['string', Type.STRING],
  ['bytes', Type.BYTES],
]
const isPackable = (type: Type): boolean => type !== Type.STRING && type !== Type.BYTES
const isKey = (type: Type): boolean => ![Type.DOUBLE, Type.FLOAT, Type.BYTES].includes(type)

const colour = { name: 'Colour', value: ['NONE', 'RED', 'DARK'].map((name, i) => ({ name, number: [0, 1, -3][i] })) }
const file = (name: string, content: object): FileDescriptorProto =>
  create(FileDescriptorProtoSchema, {
    name: `interchange/${name}.proto`,
    package: `interchange.${name}`,
    syntax: 'proto3',
    ...content,
  } as never)

/** A map's field and the message of its entries. */
function mapOf(name: string, number: number, key: Type, value: object, around: string): [object, object] {
  const entry = `${name.charAt(0).toUpperCase()}${name.slice(1)}Entry`
  return [
    many(name, number, Type.MESSAGE, { typeName: `${around}.${entry}` }),
    { name: entry, field: [one('key', 1, key), value], options: { mapEntry: true } },
  ]
}

const singular = file('singular', {
  messageType: [
    {
      name: 'Scalars',
      field: [
        ...scalars.map(([name, type], i) => one(`f${name}`, i + 1, type)),
        one('colour', 16, Type.ENUM, { typeName: '.interchange.singular.Colour' }),
        // Numbers whose tags take two bytes and five.
        one('far', 2047, Type.SINT32),
        one('farthest', 536_870_911, Type.STRING),
      ],
    },
  ],
  enumType: [colour],
})

const presence = file('presence', {
  messageType: [
    {
      name: 'Optionals',
      field: [
        ...scalars.map(([name, type], i) => one(`f${name}`, i + 1, type, { proto3Optional: true, oneofIndex: i + 1 })),
        one('colour', 16, Type.ENUM, {
          typeName: '.interchange.presence.Colour',
          proto3Optional: true,
          oneofIndex: scalars.length + 1,
        }),
        ...scalars.map(([name, type], i) => one(`p${name}`, i + 20, type, { oneofIndex: 0 })),
        one('inner', 40, Type.MESSAGE, { typeName: '.interchange.presence.Optionals', oneofIndex: 0 }),
        one('pcolour', 41, Type.ENUM, { typeName: '.interchange.presence.Colour', oneofIndex: 0 }),
      ],
      oneofDecl: [{ name: 'pick' }, ...[...scalars.map(([name]) => `_f${name}`), '_colour'].map((name) => ({ name }))],
    },
  ],
  enumType: [colour],
})

const lists = file('lists', {
  messageType: [
    {
      name: 'Lists',
      field: [
        ...scalars.map(([name, type], i) => many(`f${name}`, i + 1, type)),
        many('colours', 16, Type.ENUM, { typeName: '.interchange.lists.Colour' }),
        many('inner', 17, Type.MESSAGE, { typeName: '.interchange.lists.Lists' }),
        ...scalars
          .filter(([, type]) => isPackable(type))
          .map(([name, type], i) => many(`u${name}`, i + 20, type, { options: { packed: false } })),
      ],
    },
  ],
  enumType: [colour],
})

const mapFields = [
  ...scalars.map(([name, type], i) =>
    mapOf(`f${name}`, i + 1, Type.STRING, one('value', 2, type), '.interchange.maps.Maps'),
  ),
  ...scalars
    .filter(([, type]) => isKey(type))
    .map(([name, type], i) => mapOf(`k${name}`, i + 20, type, one('value', 2, Type.INT32), '.interchange.maps.Maps')),
  mapOf(
    'inner',
    40,
    Type.SINT64,
    one('value', 2, Type.MESSAGE, { typeName: '.interchange.maps.Maps' }),
    '.interchange.maps.Maps',
  ),
  mapOf(
    'colours',
    41,
    Type.BOOL,
    one('value', 2, Type.ENUM, { typeName: '.interchange.maps.Colour' }),
    '.interchange.maps.Maps',
  ),
]
const maps = file('maps', {
  messageType: [
    { name: 'Maps', field: mapFields.map(([field]) => field), nestedType: mapFields.map(([, entry]) => entry) },
  ],
  enumType: [colour],
})

const nestedMessage = (name: string, type: Type, nestedType: object[] = []) => ({
  name,
  field: [one('value', 1, type)],
  nestedType,
})
const nested = file('nested', {
  messageType: [
    nestedMessage('First', Type.STRING, [nestedMessage('A', Type.INT64), nestedMessage('B', Type.BOOL)]),
    nestedMessage('Second', Type.SINT32, [
      nestedMessage('A', Type.BYTES),
      nestedMessage('Deep', Type.DOUBLE, [nestedMessage('A', Type.FIXED32), nestedMessage('Deeper', Type.STRING)]),
    ]),
    // Their indexes take two bytes.
    ...Array.from({ length: 70 }, (_, i) => nestedMessage(`Other${i}`, Type.INT32)),
  ],
})
const nestedNames = ['First', 'First.A', 'First.B', 'Second', 'Second.Deep', 'Second.Deep.Deeper', 'Other0', 'Other69']

const known = file('known', {
  dependency: ['google/protobuf/timestamp.proto', 'google/protobuf/wrappers.proto'],
  messageType: [
    {
      name: 'Known',
      field: [
        one('at', 1, Type.MESSAGE, { typeName: '.google.protobuf.Timestamp' }),
        many('times', 2, Type.MESSAGE, { typeName: '.google.protobuf.Timestamp' }),
        ...['Int64', 'UInt32', 'Double', 'Bool', 'String', 'Bytes'].map((name, i) =>
          one(`w${name}`, i + 3, Type.MESSAGE, { typeName: `.google.protobuf.${name}Value` }),
        ),
      ],
    },
  ],
})

const required = { label: 2 }
const older = file('older', {
  syntax: 'proto2',
  messageType: [
    {
      name: 'Older',
      field: [
        ...scalars.map(([name, type], i) => one(`f${name}`, i + 1, type)),
        one('must', 20, Type.STRING, required),
        one('preset', 21, Type.INT64, { defaultValue: '-7' }),
        one('text', 22, Type.STRING, { defaultValue: 'none "yet"' }),
        many('unpacked', 23, Type.INT32),
        many('packed', 24, Type.INT32, { options: { packed: true } }),
      ],
    },
  ],
})

const descriptors = [
  file_google_protobuf_timestamp.proto,
  file_google_protobuf_wrappers.proto,
  ...files.slice(0, 2),
  ...[singular, presence, lists, maps, nested, known, older],
]
const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: descriptors }))
const typeOf = (name: string): DescMessage => registry.getMessage(name) as DescMessage

/** All of its integers at one end, and the other fields as given. */
const atTheEnd = (end: 2 | 3, more: object): object => ({
  ...Object.fromEntries(integers.map((each) => [`f${each[0]}`, each[end]])),
  ...more,
})
const edges = [
  {},
  atTheEnd(2, { fdouble: -Number.MAX_VALUE, ffloat: -3.4028234663852886e38, fstring: '\0', fbytes: Uint8Array.of(0) }),
  atTheEnd(3, {
    fdouble: Number.MIN_VALUE,
    ffloat: 2 ** -149,
    fstring: '\u{10ffff}\u{1f469}\u200d\u{1f680}',
    fbool: true,
  }),
  { fdouble: Number.NaN, ffloat: Number.NEGATIVE_INFINITY, fstring: '\ufeff', fbytes: new Uint8Array(300).fill(255) },
  { fdouble: -0, ffloat: -0, fint32: -1, fint64: -1n, fsint64: -1n },
]

function sample(
  name: string,
  types: readonly string[],
  content: (type: DescMessage) => fc.Arbitrary<object>,
  first: readonly object[] = [],
): ProtoSample {
  const all = types.map(typeOf)
  const made = (type: DescMessage, value: object): Message => create(type, value as never)
  return {
    name,
    types: all,
    values: fc.oneof(...all.map((type) => content(type).map((value) => made(type, value)))),
    edges: first.map((value) => made(all[0] as DescMessage, value)),
  }
}

/** Those that JSON can name: of the years 1 to 9999. */
const timestamp = fc.record({
  seconds: fc.bigInt({ min: -62_135_596_800n, max: 253_402_300_799n }),
  nanos: fc.oneof(fc.constantFrom(0, 1, 1_000_000, 999_999_999), fc.integer({ min: 0, max: 999_999_999 })),
})
const knownValues = (type: DescMessage): fc.Arbitrary<object> =>
  fc
    .record({
      rest: contents(type),
      at: fc.option(timestamp, { nil: undefined }),
      times: fc.array(timestamp, { maxLength: 3 }),
    })
    .map(({ rest, at, times }) => ({ ...rest, at, times }))

const zeros = Object.fromEntries(
  scalars.map(([name, type]) => [
    `f${name}`,
    typeof (integers.find(([each]) => each === name)?.[2] ?? 0) === 'bigint'
      ? 0n
      : type === Type.STRING
        ? ''
        : type === Type.BYTES
          ? new Uint8Array(0)
          : type === Type.BOOL
            ? false
            : 0,
  ]),
)
/** Set, and zero: to be told from what is not set. */
const setToZero = [
  zeros,
  { ...zeros, colour: 0, pick: { case: 'pint32', value: 0 } },
  { pick: { case: 'pstring', value: '' } },
]
const nestedTypes = nestedNames.map((name) => `interchange.nested.${name}`)

export const protoSamples: readonly ProtoSample[] = [
  { name: 'Proto', types: [typeOf('com.acme.Order')], values: contents(typeOf('com.acme.Order')), edges: [] },
  sample('ProtoScalars', ['interchange.singular.Scalars'], contents, edges),
  sample('ProtoPresence', ['interchange.presence.Optionals'], contents, [...edges, ...setToZero]),
  sample('ProtoLists', ['interchange.lists.Lists'], contents),
  sample('ProtoMaps', ['interchange.maps.Maps'], contents),
  sample('ProtoNested', nestedTypes, contents),
  sample('ProtoKnown', ['interchange.known.Known'], knownValues, [{ at: { seconds: -62_135_596_800n }, wString: '' }]),
  sample(
    'ProtoOlder',
    ['interchange.older.Older'],
    contents,
    [...edges, zeros].map((each) => ({ ...each, must: '', preset: 0n })),
  ),
]
