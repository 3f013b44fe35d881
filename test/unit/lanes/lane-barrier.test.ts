import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LaneOptions } from '../../../src/lanes/lane-options.ts'
import { type BarrierParts, LaneBarrier } from '../../../src/lanes/levels/lane-barrier.ts'
import { LevelState } from '../../../src/lanes/levels/level-state.ts'

test('no epoch begins while one waits for its topics', () => {
  let unresolved = true
  const acknowledged: number[] = []
  const options = { lane: 0, toEngine: ({ epoch }: { epoch: number }) => acknowledged.push(epoch) }
  const parts = {
    levels: [new LevelState(0)],
    outputs: { unresolved: () => unresolved, take: () => [] },
    handoffs: { total: [0, 0] },
    tasks: { all: () => [] },
  }
  const host = { run: () => 1, faulted: () => false }
  const barrier = new LaneBarrier(options as unknown as LaneOptions, parts as unknown as BarrierParts, host)
  barrier.begin(1)
  barrier.aligned(parts.levels[0] as LevelState, 1)
  assert.deepEqual(acknowledged, [])
  assert.throws(() => barrier.begin(2), /epoch 2 begins while 1 is not acknowledged/)
  unresolved = false
  barrier.topicsResolved()
  assert.deepEqual(acknowledged, [1])
  barrier.begin(2)
})
