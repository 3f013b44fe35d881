/** Sources of one alignment group on live data: the one ahead waits for the one behind. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../support/millrace.ts'
import { type In, TestEngine } from './support/engine.ts'

const start = 1_700_000_000_000
const seconds = (from: number, to: number): In[] =>
  Array.from({ length: to - from }, (_, i) => ({ key: 'k', value: from + i, timestamp: start + (from + i) * 1000 }))

async function furthest(engine: TestEngine): Promise<number> {
  return Math.max(-1, ...(await engine.read('fast-out')).map(({ value }) => value as number))
}

describe('an alignment group', () => {
  test('holds the source that is ahead, shows it, and lets it go as the other one follows', async (t) => {
    const engine = await TestEngine.start(t, 'aligned', { 'broker.embedded.partitions': 1 })
    await engine.put('slow', seconds(0, 1))
    await eventually('the slow source has begun', async () => (await engine.read('slow-out')).length === 1)
    await engine.put('fast', seconds(0, 60))
    const binding = () => engine.runtime.view.watermarks()?.alignmentBinding
    await eventually('the fast one is held', () => binding() != null)
    await sleep(200)
    const first = await furthest(engine)
    assert.ok(first >= 9 && first <= 11, `read to second ${first}`)
    assert.equal(binding()?.group, 'both')
    assert.deepEqual(binding()?.emptyLaggards, ['slow:0'])
    assert.equal(engine.runtime.view.watermarks()?.partitions['fast:0']?.alignmentHeld, true)

    await engine.put('slow', seconds(1, 31))
    await eventually('the fast one follows', async () => (await furthest(engine)) > 30)
    await sleep(200)
    const second = await furthest(engine)
    assert.ok(second >= 39 && second <= 41, `read to second ${second}`)

    await engine.put('slow', seconds(31, 60))
    await engine.idle()
    assert.equal(await furthest(engine), 59)
    assert.equal((await engine.read('slow-out')).length, 60)
  })

  test('lets commits and pauses through while it holds', async (t) => {
    const engine = await TestEngine.start(t, 'aligned', { 'broker.embedded.partitions': 1 })
    await engine.put('slow', seconds(0, 1))
    await eventually('the slow source has begun', async () => (await engine.read('slow-out')).length === 1)
    await engine.put('fast', seconds(0, 60))
    await eventually('the fast one is held', () => engine.runtime.view.watermarks()?.alignmentBinding != null)
    assert.ok(engine.runtime.commands.pause().ok)
    await engine.reaches('PAUSED')
    const before = await furthest(engine)
    await engine.put('slow', seconds(1, 60))
    await sleep(200)
    assert.equal(await furthest(engine), before)
    assert.ok(engine.runtime.commands.unpause().ok)
    await engine.idle()
    assert.equal(await furthest(engine), 59)
  })
})
