/** What a lane is found to be at, from one look at its counters to the next. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CounterLayout, laneBlockLength, laneIndex, newBlock } from '../../../src/base/counters.ts'
import { VirtualClock } from '../../../src/base/clock.ts'
import { threadEnded } from '../../../src/lanes/lane-counters.ts'
import { LaneLook } from '../../../src/view/diagnosis/lane-look.ts'

const layout: CounterLayout = { nodes: 1, subtopologies: 1, stores: [], sourceTopics: ['in'], sinkTopics: [] }

function lookAt() {
  const block = newBlock(laneBlockLength(layout))
  const look = new LaneLook(0, block, layout)
  const facts = (now: number, restarts = 0) =>
    look.take(
      now,
      ['in'],
      () => 'node',
      undefined,
      () => null,
      restarts,
    ).facts
  return {
    block,
    facts,
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
  assert.equal(busySinceMs(4900), 1000)
  assert.equal(busySinceMs(5000), null)
  work(1)
  assert.equal(busySinceMs(5250), 5250)
})

test('a lane that gets a little again and again is not at work all along', () => {
  const { block, busySinceMs, facts } = lookAt()
  for (let now = 1000; now < 20_000; now += 250) {
    block[laneIndex.queuedRecords] = now % 2000 === 0 ? 1 : 0
    const since = busySinceMs(now)
    assert.ok(since === null || now - since < 5000, `at work since ${since} at ${now}`)
  }
  assert.ok((facts(20_000).busyShare ?? 1) < 0.25)
})

const call = (block: Float64Array, id: number, offset: number, sinceMs: number): void => {
  block[laneIndex.oldestCall] = id
  block[laneIndex.oldestOffset] = offset
  block[laneIndex.oldestSinceMs] = sinceMs
}

test('a call that a restart in place gave up, and that is made anew, has hung since the first time', () => {
  const { block, facts } = lookAt()
  call(block, 1, 7, 1000)
  assert.deepEqual(facts(9000).call?.sinceMs, 1000)
  call(block, 0, -1, 0)
  // The restart is told before or after the call is gone.
  facts(9250)
  facts(9500, 1)
  call(block, 2, 3, 10_000)
  assert.equal(facts(10_000, 1).call?.sinceMs, 10_000, 'another record of the same partition comes first')
  call(block, 3, 7, 10_100)
  const again = facts(10_250, 1)
  assert.equal(again.longestCallMs, 250)
  assert.deepEqual([again.call?.sinceMs, again.call?.isAgain], [1000, true])
  call(block, 0, -1, 0)
  facts(12_000, 2)
  call(block, 4, 7, 12_500)
  assert.equal(facts(12_500, 2).call?.sinceMs, 1000, 'given up once more')
  call(block, 5, 8, 13_000)
  const answered = facts(13_000, 2)
  assert.deepEqual([answered.call?.sinceMs, answered.call?.isAgain], [13_000, undefined])
  call(block, 6, 7, 14_000)
  assert.equal(facts(14_000, 2).call?.sinceMs, 14_000, 'it had been answered')
})

test('a call that ends by itself is what calls may take', () => {
  const { block, facts } = lookAt()
  call(block, 1, 7, 1000)
  facts(1000)
  call(block, 2, 8, 5000)
  assert.equal(facts(5000).longestCallMs, 4000)
  call(block, 0, -1, 0)
  facts(11_000)
  assert.equal(facts(13_000).longestCallMs, 6000)
})

test('a lane whose thread has ended is in no function, has nothing before it, and has done what it did', () => {
  const { block, facts } = lookAt()
  block[laneIndex.turnsBegun] = 5
  block[laneIndex.turnsEnded] = 4
  block[laneIndex.currentNode] = 0
  block[laneIndex.queuedRecords] = 100
  block[laneIndex.inFlightAsync] = 1
  block[laneIndex.oldestCall] = 3
  block[laneIndex.recordsProcessed] = 70
  assert.equal(facts(1000).stepSinceMs, 1000)
  threadEnded(layout, block, new VirtualClock())
  for (const now of [10_000, 20_000]) {
    const { stepSinceMs, call, queuedRecords, busySinceMs } = facts(now)
    assert.deepEqual(
      { stepSinceMs, call, queuedRecords, busySinceMs },
      { stepSinceMs: null, call: null, queuedRecords: 0, busySinceMs: null },
    )
  }
  assert.equal(block[laneIndex.recordsProcessed], 70)
})
