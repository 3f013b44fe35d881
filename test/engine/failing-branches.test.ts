/** A record that fails in one branch of a topology goes on in the others: as in Kafka Streams, at the operator that failed alone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Order } from './apps/failing-branches.ts'
import { byKey, firstTime, type In, lastByKey, type Out, TestEngine } from './support/engine.ts'

const branches = ['m', 'a', 's', 'f', 'p', 'g']

const orders: Order[] = Array.from({ length: 600 }, (_, n) => ({
  n,
  fails: branches.filter((_, i) => n % (5 + i) === 0).join(''),
}))
const input: In[] = orders.map((order) => ({
  key: `key-${order.n % 7}`,
  value: order,
  timestamp: firstTime + order.n,
}))

const without = (branch: string): Order[] => orders.filter(({ fails }) => !fails.includes(branch))

/** By key, in order. */
function expected(list: ReadonlyArray<{ readonly n: number }>): Record<string, number[]> {
  const result: Record<string, number[]> = {}
  for (const { n } of list) result[`key-${n % 7}`] = [...(result[`key-${n % 7}`] ?? []), n]
  return result
}

function numbers(records: readonly Out[]): Record<string, number[]> {
  const values = Object.entries(byKey<{ n: number }>(records))
  return Object.fromEntries(values.map(([key, list]) => [key, list.map(({ n }) => n)]))
}

for (const lanes of [1, 2, 4]) {
  for (const policy of ['skip', 'dead-letter']) {
    test(`what fails in one branch goes on in the others: ${lanes} lanes, ${policy}`, async (t) => {
      const engine = await TestEngine.start(t, 'failing-branches', {
        'engine.lanes.count': lanes,
        'errors.processing': policy,
        'errors.producing': policy,
      })
      await engine.put('orders', input)
      await engine.idle()
      const told = async (topic: string): Promise<Record<string, number[]>> => numbers(await engine.read(topic))
      assert.deepEqual(await told('all'), expected(orders))
      assert.deepEqual(await told('mapped'), expected(without('m')))
      assert.deepEqual(await told('later'), expected(without('a')))
      assert.deepEqual(await told('picked'), expected(without('s')))
      // One part of three fails, and one record of two that were forwarded.
      const parts = orders.flatMap((order) => [order, order, order].slice(order.fails.includes('f') ? 1 : 0))
      assert.deepEqual(await told('parts'), expected(parts))
      const forwarded = orders.flatMap((order) => [order, order].slice(order.fails.includes('p') ? 1 : 0))
      assert.deepEqual(await told('forwarded'), expected(forwarded))
      const sums: Record<string, number> = {}
      for (const { n } of without('g')) sums[n % 5] = (sums[n % 5] ?? 0) + n
      assert.deepEqual(lastByKey(await engine.read('sums')), sums)

      const failures = orders.reduce((sum, { fails }) => sum + fails.length, 0)
      assert.equal(engine.dropped('handler'), failures)
      if (policy === 'skip') return
      // Each failure has its letter, and each letter the record as it came.
      const letters = await engine.read('failing-branches-dead-letters')
      assert.equal(letters.length, failures)
      for (const { key, value, timestamp, headers } of letters) {
        const { n } = value as Order
        const isBehindRekey = headers['__streams.errors.message'] === `${n} is wrong in g`
        assert.deepEqual(
          [key, value, timestamp],
          [isBehindRekey ? `${n % 5}` : `key-${n % 7}`, orders[n], firstTime + n],
        )
      }
    })
  }
}
