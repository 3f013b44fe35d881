/** What a timer hands to another lane, or to another level of its own, is committed: no record may come for hours. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../support/millrace.ts'
import { TestEngine } from './support/engine.ts'

const start = 1_700_000_000_000

for (const lanes of [1, 2]) {
  test(`what a timer forwards to a deeper level is told though no record comes behind (${lanes} lanes)`, async (t) => {
    const engine = await TestEngine.start(t, 'told-totals', {
      'broker.embedded.partitions': 2,
      'engine.lanes.count': lanes,
      'commit-barrier.interval-ms': 200,
    })
    // One partition turns idle, which lets time go on to the end of the other.
    await engine.put('in', [
      { key: 'a', value: 1, timestamp: start, partition: 0 },
      { key: 'b', value: 1, timestamp: start, partition: 1 },
      { key: 'a', value: 1, timestamp: start + 1000, partition: 0 },
      { key: 'a', value: 1, timestamp: start + 100_000, partition: 0 },
    ])
    await eventually('the totals are told as they are at the end', async () => {
      const told = await engine.read('out')
      const last = new Map(told.map(({ key, value }) => [key, value]))
      return last.get('all-a') === 3 && last.get('all-b') === 1
    })
    assert.equal(engine.dropped('late'), 0)
  })
}
