/** As they stand in the registry. */
export const paymentSchema = {
  type: 'record',
  name: 'Payment',
  namespace: 'com.acme',
  fields: [
    { name: 'id', type: { type: 'string', logicalType: 'uuid' } },
    { name: 'amount', type: { type: 'bytes', logicalType: 'decimal', precision: 12, scale: 2 } },
    { name: 'at', type: { type: 'long', logicalType: 'timestamp-millis' } },
    { name: 'note', type: ['null', 'string'], default: null },
  ],
}

export const balanceSchema = {
  type: 'record',
  name: 'Balance',
  namespace: 'com.acme',
  fields: [
    { name: 'payments', type: 'int' },
    { name: 'cents', type: 'long' },
    { name: 'last', type: ['null', { type: 'long', logicalType: 'timestamp-millis' }], default: null },
  ],
}
