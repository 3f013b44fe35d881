/** What a lane is found to be at, from one look at its counters to the next. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CounterLayout, laneBlockLength, laneIndex, newBlock } from '../../../src/base/counters.ts'
import { LaneLook } from '../../../src/view/diagnosis/lane-look.ts'

const layout: CounterLayout = { nodes: 1, subtopologies: 1, stores: [], sourceTopics: ['in'], sinkTopics: [] }

function lookAt() {
  const block = newBlock(laneBlockLength(layout))
  const look = new LaneLook(0, block, layout)
  const facts = (now: number) => look.take(now, ['in'], () => 'node', undefined).facts
  return {
    block,
    stepSinceMs: (now: number) => facts(now).stepSinceMs,
    busySinceMs: (now: number) => facts(now).busySinceMs,
  }
}

test('a call that goes on and on is one step, since it was first seen', () => {
  const { block, stepSinceMs } = lookAt()
  block[laneIndex.turnsBegun] = 1
  assert.deepEqual([1000, 2000, 9000].map(stepSinceMs), [1000, 1000, 1000])
})

test('each call that returns begins another step, also where one record or timer has many', () => {
  const { block, stepSinceMs } = lookAt()
  block[laneIndex.turnsBegun] = 1
  const seen = [1000, 2000, 3000].map((now) => {
    block[laneIndex.steps]!++
    return stepSinceMs(now)
  })
  assert.deepEqual(seen, [1000, 2000, 3000])
})

test('a lane that has nothing for a moment, because what feeds it waits for a processor, goes on being at work', () => {
  const { block, busySinceMs } = lookAt()
  const work = (records: number): void => {
    block[laneIndex.queuedRecords] = records
  }
  work(1)
  assert.equal(busySinceMs(1000), 1000)
  work(0)
  assert.equal(busySinceMs(1250), 1000)
  assert.equal(busySinceMs(1750), 1000)
  work(1)
  assert.equal(busySinceMs(2000), 1000)
  work(0)
  assert.equal(busySinceMs(2900), 1000)
  assert.equal(busySinceMs(3000), null)
  work(1)
  assert.equal(busySinceMs(3250), 3250)
})
