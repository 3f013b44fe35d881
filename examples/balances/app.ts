/** Balances of customers from their payments, in Avro from end to end. */
import { defineApp } from 'millrace'
import { avro } from 'millrace/registry'
import { balanceSchema, paymentSchema } from './schemas.ts'
import type { Balance, Payment } from './types.ts'

export default defineApp({
  applicationId: 'balances',
  build(topology) {
    const balance = avro<Balance>(balanceSchema, { register: 'on-start' })
    topology
      .stream('payments', { value: avro<Payment>(paymentSchema) })
      .groupByKey()
      .aggregate<Balance>(
        () => ({ payments: 0, cents: 0, last: null }),
        (sum, { amount, at }) => ({
          payments: sum.payments + 1,
          cents: sum.cents + Math.round(Number(amount) * 100),
          last: at,
        }),
        { store: { name: 'balances', value: balance } },
      )
      .toStream()
      .to('balances', { value: balance })
  },
})
