import assert from 'node:assert/strict'
import { test } from 'node:test'
import { avro } from 'millrace/registry'
import { EmbeddedRegistry, TopologyTestDriver } from 'millrace/testing'
import { avroTypeScript } from '../../src/serde/registry/avro/avro-typescript.ts'
import app from './app.ts'
import { balanceSchema, paymentSchema } from './schemas.ts'
import type { Balance, Payment } from './types.ts'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const payment = (amount: string, at: number): Payment => ({
  id: '1b4e28ba-2fa1-11d2-883f-0016d3cca427',
  amount,
  at,
  note: null,
})

test('payments add up to the cent', async (t) => {
  const driver = new TopologyTestDriver(app)
  t.after(() => driver.close())
  const payments = driver.input<string, Payment>('payments')
  for (let i = 0; i < 10; i++) await payments.pipe('ann', payment('0.10', i))
  await payments.pipe('bob', payment('-12.34', 99))
  const balances = driver.output<string, Balance>('balances').readAll()
  assert.deepEqual(balances.at(-2)?.value, { payments: 10, cents: 100, last: 9 })
  assert.deepEqual(balances.at(-1)?.value, { payments: 1, cents: -1234, last: 99 })
})

test('a producer that is ahead is understood', async (t) => {
  const registry = new EmbeddedRegistry()
  registry.register('payments-value', paymentSchema)
  const driver = new TopologyTestDriver(app, { registry })
  t.after(() => driver.close())
  const ahead = {
    ...paymentSchema,
    fields: [{ name: 'channel', type: 'string', default: 'web' }, ...paymentSchema.fields],
  }
  const payments = driver.input<string, Payment & { channel: string }>('payments', { value: avro(ahead) })
  await payments.pipe('ann', { ...payment('3.00', 5), channel: 'shop' })
  assert.deepEqual(driver.output<string, Balance>('balances').read()?.value, { payments: 1, cents: 300, last: 5 })
})

test('the types are those of the schemas', () => {
  const text = readFileSync(join(import.meta.dirname, 'types.ts'), 'utf8')
  assert.ok(text.endsWith(avroTypeScript([paymentSchema, balanceSchema])))
})
