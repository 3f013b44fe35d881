/** Schemas that the applications and their tests share. */
export const orderSchema = {
  type: 'record',
  name: 'Order',
  namespace: 'com.acme',
  fields: [
    { name: 'id', type: 'int' },
    { name: 'amount', type: 'double' },
  ],
}

/** A later version by a producer that is ahead of the application. */
export const laterOrderSchema = {
  ...orderSchema,
  fields: [{ name: 'channel', type: 'string', default: 'web' }, ...orderSchema.fields],
}

export const totalSchema = {
  type: 'record',
  name: 'Total',
  namespace: 'com.acme',
  fields: [
    { name: 'orders', type: 'int' },
    { name: 'amount', type: 'double' },
    { name: 'last', type: 'int' },
  ],
}
