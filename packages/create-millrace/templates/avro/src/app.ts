import { defineApp, serdes } from 'millrace'
import { avro } from 'millrace/registry'
import { balanceSchema, paymentSchema } from './schemas.ts'

export interface Payment {
  readonly cents: number
  readonly at: number
}

export interface Balance {
  readonly payments: number
  readonly cents: number
}

/** The balance of each account, in Avro in and out. The schema of balances is registered when the application starts. */
export default defineApp({
  applicationId: 'millrace-app',
  build(topology) {
    const balance = avro<Balance>(balanceSchema, { register: 'on-start' })
    topology
      .stream('payments', { key: serdes.string, value: avro<Payment>(paymentSchema) })
      .groupByKey()
      .aggregate<Balance>(
        () => ({ payments: 0, cents: 0 }),
        ({ payments, cents }, payment) => ({ payments: payments + 1, cents: cents + payment.cents }),
        { store: { name: 'balances', value: balance } },
      )
      .toStream()
      .to('balances', { value: balance })
  },
})
