/** Windows that close while nothing comes: a record that waits has come, and a pause is no quiet. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../support/millrace.ts'
import { byKey, firstTime, type In, TestEngine } from './support/engine.ts'

const config = { 'broker.embedded.partitions': 1, 'watermark.idleness-timeout': '200ms' }

const inOneWindow = (count: number): In[] =>
  Array.from({ length: count }, (_, i) => ({ key: 'a', value: i, timestamp: firstTime + i }))

test('behind a function that takes longer than the quiet, every record of a window is counted', async (t) => {
  const engine = await TestEngine.start(t, 'quiet-or-slow', config)
  await engine.put('blocked', inOneWindow(20))
  await engine.put('called', inOneWindow(21))
  const told = async (): Promise<number> => {
    const topics = ['blocked-counts', 'called-counts', 're-keyed-counts']
    return (await Promise.all(topics.map((topic) => engine.read(topic)))).flat().length
  }
  await eventually('five windows are told', async () => (await told()) >= 5, 60_000)
  assert.deepEqual(byKey(await engine.read('blocked-counts')), { a: [20] })
  assert.deepEqual(byKey(await engine.read('called-counts')), { a: [21] })
  assert.deepEqual(byKey(await engine.read('re-keyed-counts')), { 'third-0': [7], 'third-1': [7], 'third-2': [7] })
  assert.equal(engine.dropped('late'), 0)
})

test('what comes during a pause is in its windows behind it', async (t) => {
  const engine = await TestEngine.start(t, 'quiet-or-slow', config)
  const ticks = (from: number, count: number): In[] =>
    Array.from({ length: count }, (_, i) => ({ key: 'a', value: i, timestamp: firstTime + 100 * (from + i) }))
  await engine.put('ticks', ticks(0, 5))
  await engine.idle()
  engine.runtime.commands.pause()
  await eventually('it is paused', () => engine.state === 'PAUSED')
  await sleep(1500)
  await engine.put('ticks', ticks(5, 25))
  await sleep(500)
  engine.runtime.commands.unpause()
  await eventually('three windows are told', async () => (await engine.read('per-second')).length >= 3, 60_000)
  assert.deepEqual(byKey(await engine.read('per-second')), { a: [10, 10, 10] })
  assert.equal(engine.dropped('late'), 0)
})
