/** Files of Protobuf as descriptors, as a compiler would give them. */
import { create } from '@bufbuild/protobuf'
import {
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt'

export const one = (name: string, number: number, type: Type, more: object = {}) => ({
  name,
  number,
  type,
  label: Label.OPTIONAL,
  jsonName: name,
  ...more,
})
export const many = (name: string, number: number, type: Type, more: object = {}) => ({
  ...one(name, number, type, more),
  label: Label.REPEATED,
})

const money = create(FileDescriptorProtoSchema, {
  name: 'com/acme/money.proto',
  package: 'com.acme',
  syntax: 'proto3',
  messageType: [{ name: 'Money', field: [one('units', 1, Type.INT64), one('currency', 2, Type.STRING)] }],
})

const orders = create(FileDescriptorProtoSchema, {
  name: 'com/acme/orders.proto',
  package: 'com.acme',
  syntax: 'proto3',
  dependency: ['com/acme/money.proto'],
  messageType: [
    {
      name: 'Order',
      field: [
        one('id', 1, Type.STRING),
        one('amount', 2, Type.MESSAGE, { typeName: '.com.acme.Money' }),
        many('lines', 3, Type.MESSAGE, { typeName: '.com.acme.Order.Line' }),
        many('tags', 4, Type.MESSAGE, { typeName: '.com.acme.Order.TagsEntry' }),
        one('card', 5, Type.STRING, { oneofIndex: 0 }),
        one('cash', 6, Type.BOOL, { oneofIndex: 0 }),
        one('state', 7, Type.ENUM, { typeName: '.com.acme.Order.State' }),
        one('raw', 8, Type.BYTES),
        one('note', 9, Type.STRING, { proto3Optional: true, oneofIndex: 1 }),
      ],
      oneofDecl: [{ name: 'paid' }, { name: '_note' }],
      nestedType: [
        { name: 'Line', field: [one('sku', 1, Type.STRING), one('count', 2, Type.INT32)] },
        {
          name: 'TagsEntry',
          field: [one('key', 1, Type.STRING), one('value', 2, Type.INT32)],
          options: { mapEntry: true },
        },
      ],
      enumType: [
        {
          name: 'State',
          value: [
            { name: 'NEW', number: 0 },
            { name: 'PAID', number: 1 },
            { name: 'SENT', number: 2 },
          ],
        },
      ],
      reservedRange: [{ start: 20, end: 23 }],
      reservedName: ['old'],
    },
    { name: 'Refund', field: [one('id', 1, Type.STRING)] },
  ],
})

const later = create(FileDescriptorProtoSchema, {
  name: 'com/acme/v2/refund.proto',
  package: 'com.acme.v2',
  syntax: 'proto3',
  messageType: [{ name: 'Refund', field: [one('id', 1, Type.STRING), one('reason', 2, Type.STRING)] }],
})

export const files: FileDescriptorProto[] = [money, orders, later]
