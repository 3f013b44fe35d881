/** Lanes let go of a run; in place of one whose thread has ended a new one is asked for, and does. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EngineOptions } from '../../../src/engine/engine-options.ts'
import type { EngineFact } from '../../../src/engine/protocol.ts'
import { LaneReset } from '../../../src/engine/recovery/lane-reset.ts'
import { Runs } from '../../../src/engine/run.ts'

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function stage() {
  const sent: string[] = []
  const facts: EngineFact[] = []
  const stuck: number[] = []
  const looks: Array<() => void> = []
  const options = {
    settings: { lanes: 2, barrierTimeoutMs: 10_000 },
    timers: {
      after: (_: number, look: () => void) => {
        looks.push(look)
        return () => undefined
      },
    },
    send: (lane: number, message: { type: string; run: number }) =>
      sent.push(`${message.type} ${message.run} to ${lane}`),
    fact: (fact: EngineFact) => facts.push(fact),
  }
  const reset = new LaneReset(options as unknown as EngineOptions, {
    stillMs: (_, toldMs) => toldMs,
    stuck: (lane) => stuck.push(lane),
  })
  const runs = new Runs()
  const begin = () => {
    const state = { done: false }
    void reset.reset(runs.next()).then(() => {
      state.done = true
    })
    return state
  }
  const look = (times: number): void => {
    for (let i = 0; i < times; i++) looks.shift()?.()
  }
  return { reset, begin, look, sent, facts, stuck }
}

test('a lane whose thread has ended is made anew, and is reset as the others are', async () => {
  const { reset, begin, sent, facts } = stage()
  reset.lost(1)
  assert.deepEqual(facts, [], 'it is made with the run that follows')
  const under = begin()
  assert.deepEqual(facts, [{ type: 'lane-wanted', lane: 1 }])
  reset.laneDone(0)
  sent.length = 0
  reset.made(1)
  assert.deepEqual(sent, ['reset 1 to 1'])
  await settled()
  assert.equal(under.done, false)
  reset.laneDone(1)
  await settled()
  assert.equal(under.done, true)
  begin()
  assert.equal(facts.length, 1, 'it is there')
})

test('one that loads the application is not stuck, however long that takes; another one is', () => {
  const { reset, begin, look, stuck } = stage()
  reset.lost(1)
  begin()
  reset.made(1)
  reset.laneDone(0)
  look(100)
  assert.deepEqual(stuck, [])
  reset.laneDone(1)
  begin()
  reset.laneDone(1)
  look(100)
  assert.deepEqual(stuck, [0])
})

test('one that ends while it is waited for is waited for no longer, and is made anew with the next reset', async () => {
  const { reset, begin, facts } = stage()
  const first = begin()
  reset.laneDone(0)
  reset.lost(1)
  await settled()
  assert.deepEqual([first.done, facts.length], [true, 0])
  const second = begin()
  reset.laneDone(0)
  reset.lost(1)
  await settled()
  assert.deepEqual([second.done, facts.length], [true, 1], 'its successor has ended as well')
  begin()
  assert.equal(facts.length, 2)
})

test('one that is being made is asked for once, whatever else begins meanwhile', () => {
  const { reset, begin, facts, sent } = stage()
  reset.lost(1)
  begin()
  begin()
  assert.equal(facts.length, 1)
  sent.length = 0
  reset.made(1)
  assert.deepEqual(sent, ['reset 2 to 1'])
})
