/** Records that wait for a partner, or for time, and fail when they go on: the policy judges them as it does any other. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp, serdes, type Topology } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

const number = { key: serdes.string, value: serdes.json<number>() }

function refuseOne(value: number | null): number {
  if (value === 1) throw new Error('not one')
  return value ?? 0
}

const topologies: Record<string, (topology: Topology) => void> = {
  'a join of streams': (topology) => {
    topology
      .stream('left', number)
      .leftJoin(topology.stream('right', number), (left) => refuseOne(left), { within: '5s' })
      .to('out', number)
  },
  'a join with a table that waits for what is late': (topology) => {
    const store = { name: 'right', type: 'versioned', historyRetention: '1h' } as const
    topology
      .stream('left', number)
      .leftJoin(topology.table('right', { ...number, store }), (left) => refuseOne(left), { grace: '5s' })
      .to('out', number)
  },
}

describe('a record that was held back and fails', () => {
  for (const [name, build] of Object.entries(topologies))
    test(`goes no further, and those beside it do: ${name}`, async () => {
      const driver = new TopologyTestDriver(defineApp({ applicationId: 'test', build }), {
        config: { 'errors.processing': 'dead-letter' },
      })
      await driver.input('left').pipe('k', 1, { timestamp: 0 })
      await driver.input('left').pipe('other', 2, { timestamp: 1 })
      for (const topic of ['left', 'right']) await driver.input(topic).pipe('end', 3, { timestamp: 100_000 })
      const out = driver.output('out').readAll()
      assert.ok(out.some(({ key, value }) => key === 'other' && value === 2))
      assert.ok(out.every(({ key }) => key !== 'k'))
      const letters = driver.output('test-dead-letters', number).readAll()
      assert.deepEqual(
        letters.map(({ key, value }) => [key, value]),
        [['k', 1]],
      )
    })
})
