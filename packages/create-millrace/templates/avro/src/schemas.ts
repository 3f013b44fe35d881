export const paymentSchema = {
  type: 'record',
  name: 'Payment',
  namespace: 'com.example',
  fields: [
    { name: 'cents', type: 'long' },
    { name: 'at', type: 'long' },
  ],
} as const

export const balanceSchema = {
  type: 'record',
  name: 'Balance',
  namespace: 'com.example',
  fields: [
    { name: 'payments', type: 'int' },
    { name: 'cents', type: 'long' },
  ],
} as const
