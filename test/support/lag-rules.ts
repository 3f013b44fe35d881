/** What lag has to count, on either broker. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { OffsetsSnapshot } from '../../src/view/view.ts'
import { type In, TestEngine } from '../engine/support/engine.ts'
import { TestProducer } from './broker-io.ts'
import { eventually } from './millrace.ts'

const numbers = (count: number): In[] => Array.from({ length: count }, (_, i) => ({ key: `k${i % 50}`, value: i }))

function lagOf(engine: TestEngine): { lag: number; withheld: number } {
  const partitions = (engine.runtime.view.offsets() as OffsetsSnapshot | null)?.sources.flatMap((s) => s.partitions)
  return {
    lag: (partitions ?? []).reduce((sum, at) => sum + at.logEndOffset - at.committedOffset, 0),
    withheld: (partitions ?? []).reduce((sum, at) => sum + at.withheld, 0),
  }
}

/** Tests of lag against an engine of the application `running-sum`, on topics that nobody else uses. */
export function lagRules(config: () => Readonly<Record<string, unknown>>): void {
  let engine: TestEngine
  before(async () => {
    engine = await TestEngine.open('running-sum', config())
  })
  after(() => engine?.stop())

  test('what is written while the application is paused is lag at once', async () => {
    await engine.put('numbers', numbers(50))
    await engine.idle()
    await eventually('nothing is left', () => lagOf(engine).lag === 0)
    engine.runtime.commands.pause()
    await engine.reaches('PAUSED')
    // A request that waited at the broker tells of what comes first; of what comes then no request does.
    for (const total of [2000, 4000]) {
      await engine.put('numbers', numbers(2000))
      await eventually('all of it shows', () => lagOf(engine).lag === total)
    }
    assert.equal(lagOf(engine).withheld, 0)
    engine.runtime.commands.unpause()
    await eventually('it is made up', () => lagOf(engine).lag === 0)
  })

  test('what a foreign transaction holds back is lag, told apart, and not the end of the input', async () => {
    await engine.put('numbers', numbers(50))
    await engine.idle()
    const foreign = await TestProducer.open(engine.broker, 'foreign')
    await foreign.write('numbers', 0, [{ key: 'held', value: '1' }])
    await engine.put(
      'numbers',
      numbers(500).map((record) => ({ ...record, partition: 0 })),
    )
    await eventually('it shows', () => lagOf(engine).lag === 501 && lagOf(engine).withheld === 501)

    let isIdle = false
    const idle = engine.runtime.untilIdle().then(() => {
      isIdle = true
    })
    await eventually('the wait is told', () =>
      engine.log.some(({ message }) =>
        /501 records of numbers:0 lie behind an open transaction of another/.test(message),
      ),
    )
    assert.equal(isIdle, false)
    await foreign.end(true)
    await idle
    await eventually('it is made up', () => lagOf(engine).lag === 0 && lagOf(engine).withheld === 0)
    const seen = await engine.read('seen')
    assert.deepEqual(seen.find(({ key }) => key === 'held')?.value, [1])
  })
}
