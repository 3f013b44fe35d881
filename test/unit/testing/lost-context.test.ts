/** What a function forwards from work that was begun elsewhere, with no record at hand. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineApp, type ProcessorContext, serdes } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

/** Records are done by a loop that was begun with the processor: what it forwards is of none of them. */
function withLoop(context: ProcessorContext<string, string, number>) {
  let hand = Promise.withResolvers<{ readonly value: number; readonly done: () => void }>()
  const loop = async (): Promise<void> => {
    for (;;) {
      const { value, done } = await hand.promise
      hand = Promise.withResolvers()
      await context.forward('told', value)
      done()
    }
  }
  void loop()
  return {
    async process(value: number) {
      if (value < 0) throw new RangeError(`${value} is below zero`)
      const { promise, resolve } = Promise.withResolvers<void>()
      hand.resolve({ value, done: resolve })
      await promise
    },
  }
}

async function told(first: number): Promise<ReadonlyArray<readonly [value: unknown, timestamp: number]>> {
  const types = { key: serdes.string, value: serdes.json<number>() }
  const app = defineApp({
    applicationId: 'test',
    build: (topology) => topology.stream('in', types).process(withLoop, types).to('out'),
  })
  const driver = new TopologyTestDriver(app, { config: { 'errors.processing': 'skip' } })
  const input = driver.input('in')
  await input.pipe('a', first, { timestamp: 1000 })
  await input.pipe('a', 2, { timestamp: 60_000 })
  await input.pipe('a', 3, { timestamp: 90_000 })
  const records = driver.output('out').readAll()
  driver.close()
  return records.map(({ value, timestamp }) => [value, timestamp] as const)
}

const behind = [
  [2, 60_000],
  [3, 90_000],
] as const

test('it is as of event time, and not of the first record, whether that one failed or not', async () => {
  assert.deepEqual(await told(1), [[1, 1000], ...behind])
  assert.deepEqual(await told(-1), behind)
})
