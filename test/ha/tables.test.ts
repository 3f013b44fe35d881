/**
 * Tables on the way from one pod to the next: global tables, which a standby fills before it is needed, and tables whose
 * source topic is their changelog, which it must not read further than the group has.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { byKey } from '../engine/support/engine.ts'
import { type Pod, Pods } from './support/pods.ts'

const application = new URL('./apps/enriched.ts', import.meta.url)
const customers = ['ann', 'bob', 'cid']
const rounds = 3

describe('tables over several pods', () => {
  for (const optimization of ['none', 'all']) {
    test(`are whole after switches and a loss, optimization ${optimization}`, async (t) => {
      const settings = { 'topology.optimization': optimization, 'ha.failover-timeout': 2000 }
      const pods = await Pods.start(t, application, ['pod-a', 'pod-b'], settings)
      await pods.put(
        'names',
        customers.map((key) => ({ key, value: key.toUpperCase() })),
      )
      await pods.ready()
      const latest = new Map<string, number>()
      let updates = 0
      let n = 0
      const update = async (): Promise<void> => {
        const records = customers.map((key) => ({ key, value: ++n }))
        for (const { key, value } of records) latest.set(key, value)
        updates += records.length
        await pods.put('limits', records)
        await pods.put('orders', records)
      }
      for (let round = 0; round < rounds; round++) {
        const active = await pods.ready()
        for (let i = 0; i < 10; i++) await update()
        if (round === rounds - 1) await active.kill()
        else await pods.carryOut(active, '/ha/switch')
        for (let i = 0; i < 10; i++) await update()
        await pods.until('another pod is active', () => pods.living.some((pod: Pod) => pod !== active && pod.active))
        for (let i = 0; i < 10; i++) await update()
      }
      await pods.until('every order is out', async () => (await pods.read('enriched')).length >= updates)
      const expected = [...latest.values()].reduce((sum, limit) => sum + limit, 0)
      await pods.until('the sum is that of the latest limits', async () => {
        const all = byKey<number>(await pods.read('sum')).all ?? []
        return all.at(-1) === expected
      })
      const orders = await pods.read('enriched')
      assert.equal(orders.length, updates)
      assert.ok(orders.every(({ key, value }) => String(value).startsWith(`${key?.toUpperCase()}: `)))
    })
  }
})
