/** A record on which the function of a session fails leaves the sessions that it meets as they are. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp, session } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

const strict = (sum: number, value: number): number => {
  if (value < 0) throw new RangeError(`${value} is below zero`)
  return sum + value
}

describe('a session', () => {
  for (const emit of ['on-update', 'on-close'] as const) {
    for (const isAsync of [false, true]) {
      test(`outlives a record that its function refuses ${isAsync ? 'later' : 'at once'}: ${emit}`, async () => {
        const fold = isAsync ? async (sum: number, value: number) => strict(sum, value) : strict
        const app = defineApp({
          applicationId: 'test',
          build: (topology) =>
            topology
              .stream<string, number>('in')
              .groupByKey()
              .windowedBy(session('10s'), { emit })
              .aggregate(
                () => 0,
                fold as typeof strict,
                (a, b) => a + b,
              )
              .toStream({ key: (_, { key, start, end }) => `${key} ${start}-${end}` })
              .to('out'),
        })
        const driver = new TopologyTestDriver(app, { config: { 'errors.processing': 'skip' } })
        const input = driver.input('in')
        await input.pipe('a', 1, { timestamp: 1000 })
        await input.pipe('a', 2, { timestamp: 15_000 })
        // It would make one session of the two.
        await input.pipe('a', -1, { timestamp: 8000 })
        await input.pipe('a', 4, { timestamp: 16_000 })
        await input.pipe('z', 0, { timestamp: 100_000 })
        const told = driver.output('out').readAll()
        const sessions = new Map(told.map(({ key, value }) => [key as string, value]))
        const rows = [...sessions].filter(([key, value]) => value !== null && !key.startsWith('z'))
        assert.deepEqual(rows, [
          ['a 1000-1000', 1],
          ['a 15000-16000', 6],
        ])
      })
    }
  }
})
