import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp, type GroupedStream, serdes, type Topology } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

interface Entry {
  readonly account: string
  readonly amount: number
}

const serde = { key: serdes.string, value: serdes.json<Entry>() }

const byAccount = (topology: Topology, topic: string, name?: string): GroupedStream<string, Entry> =>
  topology.stream(topic, serde).groupBy((entry) => entry.account, { ...serde, ...(name !== undefined && { name }) })

async function lastOf(build: (topology: Topology) => void, topics: readonly string[]): Promise<unknown[]> {
  const driver = new TopologyTestDriver(defineApp({ applicationId: 'accounts', build }))
  for (const topic of ['in', 'out']) {
    for (const [i, amount] of [5, 7].entries())
      await driver.input<string, Entry>(topic).pipe(`${topic}-${i}`, { account: 'ann', amount })
  }
  const last = topics.map((topic) => driver.output<string, number>(topic).readAll().at(-1)?.value)
  driver.close()
  return last
}

describe('a cogroup of re-keyed streams', () => {
  for (const options of [undefined, { store: 'balances' }]) {
    test(`folds both, though none of them has a name${options ? ', with a named store' : ''}`, async () => {
      const build = (topology: Topology): void => {
        byAccount(topology, 'in')
          .cogroup<number>((sum, { amount }) => sum + amount)
          .cogroup(byAccount(topology, 'out'), (sum, { amount }) => sum - amount + 1)
          .aggregate(() => 100, options)
          .toStream()
          .to('balances')
      }
      assert.deepEqual(await lastOf(build, ['balances']), [102])
    })
  }

  test('shares the topic of a grouping with a name with its other aggregates', async () => {
    const build = (topology: Topology): void => {
      const payments = byAccount(topology, 'in', 'payments')
      const withdrawals = byAccount(topology, 'out', 'withdrawals')
      const both = payments
        .cogroup<number>((sum, { amount }) => sum + amount)
        .cogroup(withdrawals, (sum, { amount }) => sum - amount)
      payments.count().toStream().to('counts')
      both
        .aggregate(() => 0)
        .toStream()
        .to('balances')
      both
        .aggregate(() => 1000)
        .toStream()
        .to('limits')
    }
    assert.deepEqual(await lastOf(build, ['counts', 'balances', 'limits']), [2, 0, 1000])
  })

  for (const lanes of [1, 2, 3]) {
    test(`is read as it was by what follows behind a re-key from an earlier record, ${lanes} lanes`, async () => {
      const number = { value: serdes.json<number>() }
      const build = (topology: Topology): void => {
        const one = topology.stream<string, number>('one', number)
        const two = topology.stream<string, number>('two', number)
        const counts = two.groupBy((value) => `${value}`).count()
        const sums = two
          .groupByKey()
          .cogroup<number>((sum, value) => sum + value)
          .cogroup(one.groupByKey(), (sum, value) => sum + value)
          .aggregate(() => 0)
        const latest = one.leftJoin(counts, (value) => value).toTable()
        sums
          .join(latest, (sum, value) => `${sum} with ${value}`)
          .toStream()
          .to('out')
      }
      const driver = new TopologyTestDriver(defineApp({ applicationId: 'sums', build }), { lanes })
      const records = Array.from({ length: 20 }, (_, n) => [
        { topic: 'one', key: 'a', value: 1, timestamp: 10 * n },
        { topic: 'two', key: 'a', value: 100, timestamp: 10 * n + 1 },
      ])
      await driver.pipeAll(records.flat())
      const told = driver
        .output<string, string>('out')
        .readAll()
        .map(({ value }) => value)
      const expected = records.flatMap((_, n) => {
        const sum = 101 * n + 1
        return n === 0 ? ['1 with 1', '101 with 1'] : [`${sum} with 1`, `${sum} with 1`, `${sum + 100} with 1`]
      })
      assert.deepEqual(told, expected)
    })
  }
})
