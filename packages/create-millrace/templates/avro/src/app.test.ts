import { test } from 'node:test'
import { TopologyTestDriver } from 'millrace/testing'
import app, { type Payment } from './app.ts'

test('payments add up for each account', async (t) => {
  const driver = new TopologyTestDriver(app)
  t.after(() => driver.close())
  const payments = driver.input<string, Payment>('payments')
  await payments.pipe('ann', { cents: 1000, at: 1 })
  await payments.pipe('ann', { cents: -250, at: 2 })
  driver.output('balances').expect([
    { key: 'ann', value: { payments: 1, cents: 1000 } },
    { key: 'ann', value: { payments: 2, cents: 750 } },
  ])
})
