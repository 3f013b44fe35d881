/** What a lane is found to be at, from one look at its counters to the next. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CounterLayout, laneBlockLength, laneIndex, newBlock } from '../../../src/base/counters.ts'
import { LaneLook } from '../../../src/view/diagnosis/lane-look.ts'

const layout: CounterLayout = { nodes: 1, subtopologies: 1, stores: [], sourceTopics: ['in'], sinkTopics: [] }

function lookAt(): { block: Float64Array; stepSinceMs: (now: number) => number | null } {
  const block = newBlock(laneBlockLength(layout))
  const look = new LaneLook(0, block, layout)
  return { block, stepSinceMs: (now) => look.take(now, ['in'], () => 'node', undefined).facts.stepSinceMs }
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
