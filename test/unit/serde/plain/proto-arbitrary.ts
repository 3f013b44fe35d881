/** Message types of Protobuf at random, and values of them. */
import { create, createFileRegistry, type DescField, type DescMessage } from '@bufbuild/protobuf'
import {
  Edition,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
} from '@bufbuild/protobuf/wkt'
import fc from '../../../support/properties.ts'

const wellKnown = [file_google_protobuf_struct, file_google_protobuf_timestamp, file_google_protobuf_wrappers]

const scalarTypes = [
  Type.DOUBLE,
  Type.FLOAT,
  Type.INT64,
  Type.UINT64,
  Type.INT32,
  Type.FIXED64,
  Type.FIXED32,
  Type.BOOL,
  Type.STRING,
  Type.BYTES,
  Type.UINT32,
  Type.SFIXED32,
  Type.SFIXED64,
  Type.SINT32,
  Type.SINT64,
]
const keyTypes = scalarTypes.filter((type) => ![Type.DOUBLE, Type.FLOAT, Type.BYTES].includes(type))
const messageNames = [
  '.t.M',
  '.t.Inner',
  '.google.protobuf.Timestamp',
  '.google.protobuf.StringValue',
  '.google.protobuf.Int64Value',
  '.google.protobuf.BytesValue',
  '.google.protobuf.Struct',
]

type Syntax = 'proto2' | 'proto3' | 'editions'

interface FieldPlan {
  readonly shape: 'one' | 'optional' | 'required' | 'list' | 'map' | 'oneof' | 'group'
  readonly type: Type
  readonly typeName: string
  readonly key: Type
  readonly packed: boolean | undefined
  readonly withDefault: boolean
}

const plan: fc.Arbitrary<FieldPlan> = fc
  .record({
    shape: fc.constantFrom<FieldPlan['shape']>('one', 'one', 'optional', 'list', 'map', 'oneof', 'group', 'required'),
    of: fc.oneof(
      { weight: 5, arbitrary: fc.constantFrom(...scalarTypes).map((type) => ({ type, typeName: '' })) },
      { weight: 1, arbitrary: fc.constant({ type: Type.ENUM, typeName: '.t.E' }) },
      { weight: 2, arbitrary: fc.constantFrom(...messageNames).map((typeName) => ({ type: Type.MESSAGE, typeName })) },
    ),
    key: fc.constantFrom(...keyTypes),
    packed: fc.constantFrom(undefined, true, false),
    withDefault: fc.boolean(),
  })
  .map(({ of, ...rest }) => ({ ...rest, ...of }))

const numbers = fc.uniqueArray(
  fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 21, max: 18_999 }), fc.constant(536_870_911)),
  { minLength: 1, maxLength: 9 },
)

const innerFields = [
  { name: 'text', jsonName: 'text', number: 1, label: Label.OPTIONAL, type: Type.STRING },
  { name: 'n', jsonName: 'n', number: 2, label: Label.REPEATED, type: Type.SINT32 },
]

function fileOf(syntax: Syntax, plans: readonly FieldPlan[], numbered: readonly number[]): FileDescriptorProto {
  const nestedType: object[] = []
  const oneofDecl: object[] = [{ name: 'pick' }]
  const field = plans.map((each, i) => {
    const name = `f_${numbered[i]}`
    const base = {
      name,
      jsonName: `f${numbered[i]}`,
      number: numbered[i] as number,
      label: Label.OPTIONAL,
      type: each.type,
    }
    const typed = each.typeName === '' ? base : { ...base, typeName: each.typeName }
    switch (each.shape) {
      case 'list': {
        const isPackable = ![Type.STRING, Type.BYTES, Type.MESSAGE].includes(each.type)
        const options = isPackable && each.packed !== undefined && syntax !== 'editions' ? { packed: each.packed } : {}
        return { ...typed, label: Label.REPEATED, options }
      }
      case 'map': {
        const [key, value] = ['key', 'value'].map((part, n) => ({
          name: part,
          jsonName: part,
          number: n + 1,
          label: Label.OPTIONAL,
        }))
        const valueType = each.typeName === '' ? { type: each.type } : { type: each.type, typeName: each.typeName }
        nestedType.push({
          name: `F${i}Entry`,
          field: [
            { ...key, type: each.key },
            { ...value, ...valueType },
          ],
          options: { mapEntry: true },
        })
        return { ...base, label: Label.REPEATED, type: Type.MESSAGE, typeName: `.t.M.F${i}Entry` }
      }
      case 'oneof':
        return { ...typed, oneofIndex: 0 }
      case 'group':
        if (syntax !== 'proto2') return typed
        nestedType.push({ name: `G${i}`, field: innerFields })
        return { ...base, name: `g${i}`, jsonName: `g${i}`, type: Type.GROUP, typeName: `.t.M.G${i}` }
      case 'required':
        return syntax === 'proto2' ? { ...typed, label: Label.REQUIRED } : typed
      case 'optional':
        if (syntax !== 'proto3' || each.type === Type.MESSAGE) return withDefault(typed, each, syntax)
        oneofDecl.push({ name: `_${name}` })
        return { ...typed, proto3Optional: true, oneofIndex: oneofDecl.length - 1 }
      default:
        return typed
    }
  })
  const isOneof = plans.some(({ shape }) => shape === 'oneof')
  if (!isOneof) {
    oneofDecl.shift()
    for (const each of field as Array<{ oneofIndex?: number }>) if (each.oneofIndex !== undefined) each.oneofIndex -= 1
  }
  return create(FileDescriptorProtoSchema, {
    name: 't.proto',
    package: 't',
    ...(syntax === 'editions' ? { syntax, edition: Edition.EDITION_2023 } : { syntax }),
    dependency: wellKnown.map(({ proto }) => proto.name),
    messageType: [
      { name: 'M', field, nestedType, oneofDecl },
      { name: 'Inner', field: innerFields },
    ],
    enumType: [
      {
        name: 'E',
        value: [
          { name: 'E_A', number: 0 },
          { name: 'E_B', number: 1 },
          { name: 'E_C', number: -3 },
        ],
      },
    ],
  } as never)
}

function withDefault<T extends object>(field: T, { type, withDefault: is }: FieldPlan, syntax: Syntax): T {
  if (!is || syntax === 'proto3') return field
  if (type === Type.STRING) return { ...field, defaultValue: 'dflt' }
  return type === Type.INT32 || type === Type.INT64 ? { ...field, defaultValue: '7' } : field
}

export function descOf(file: FileDescriptorProto): DescMessage {
  const set = create(FileDescriptorSetSchema, { file: [...wellKnown.map(({ proto }) => proto), file] })
  return createFileRegistry(set).getMessage('t.M') as DescMessage
}

/** A type with fields of any kind; the same one of which some fields are not known. */
export const types: fc.Arbitrary<{ readonly desc: DescMessage; readonly older: DescMessage }> = fc
  .tuple(
    fc.constantFrom<Syntax>('proto2', 'proto3', 'proto3', 'editions'),
    numbers.chain((list) =>
      fc.tuple(fc.constant(list), fc.array(plan, { minLength: list.length, maxLength: list.length })),
    ),
    fc.integer({ min: 0, max: 3 }),
  )
  .map(([syntax, [list, plans], fewer]) => ({
    desc: descOf(fileOf(syntax, plans, list)),
    older: descOf(fileOf(syntax, plans.slice(fewer), list.slice(fewer))),
  }))

const texts = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc.constant('x'.repeat(200)),
  fc.constant('\ufeffmark'),
)

function scalar(type: number | undefined): fc.Arbitrary<unknown> {
  switch (type) {
    case Type.DOUBLE:
      return fc.double()
    case Type.FLOAT:
      return fc.float()
    case Type.INT64:
    case Type.SFIXED64:
    case Type.SINT64:
      return fc.oneof(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.bigInt({ min: -300n, max: 300n }))
    case Type.UINT64:
    case Type.FIXED64:
      return fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.bigInt({ min: 0n, max: 300n }))
    case Type.INT32:
    case Type.SFIXED32:
    case Type.SINT32:
      return fc.oneof(fc.integer(), fc.integer({ min: -300, max: 300 }))
    case Type.FIXED32:
    case Type.UINT32:
      return fc.oneof(fc.integer({ min: 0, max: 2 ** 32 - 1 }), fc.integer({ min: 0, max: 300 }))
    case Type.BOOL:
      return fc.boolean()
    case Type.STRING:
      return texts
    default:
      return fc.uint8Array({ maxLength: 20 })
  }
}

function single(field: DescField, depth: number): fc.Arbitrary<unknown> {
  if (field.enum !== undefined) return fc.constantFrom(0, 1, -3)
  if (field.message === undefined) return scalar(field.scalar)
  const { typeName } = field.message
  if (typeName === 'google.protobuf.Struct')
    return fc.dictionary(fc.string({ maxLength: 3 }), fc.constantFrom(1, 'a', null, true))
  const isUnwrapped = typeName.endsWith('Value') && field.fieldKind === 'message' && field.oneof === undefined
  if (isUnwrapped) return scalar(field.message.fields[0]?.scalar)
  return contents(field.message, depth - 1)
}

/** What a message is made of; fields are left out at random, except for required ones. */
export function contents(desc: DescMessage, depth = 2): fc.Arbitrary<Record<string, unknown>> {
  if (depth <= 0) return fc.constant({})
  const model: Record<string, fc.Arbitrary<unknown>> = {}
  const required: string[] = []
  for (const member of desc.members) {
    if (member.kind === 'oneof') {
      const cases = member.fields.map((field) =>
        single(field, depth).map((value) => ({ case: field.localName, value })),
      )
      model[member.localName] = fc.oneof(fc.constant({ case: undefined }), ...cases)
    } else if (member.fieldKind === 'list') {
      model[member.localName] = fc.array(single(member, depth), { maxLength: 4 })
    } else if (member.fieldKind === 'map') {
      const key = scalar(member.mapKey).map((each) => (each === '__proto__' ? 'p' : String(each)))
      model[member.localName] = fc.dictionary(key as fc.Arbitrary<string>, single(member, depth), {
        maxKeys: 3,
        noNullPrototype: true,
      })
    } else {
      model[member.localName] = single(member, depth)
      if (member.presence === 3) required.push(member.localName)
    }
  }
  return fc.record(model, { requiredKeys: required, noNullPrototype: true })
}
