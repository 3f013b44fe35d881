/** The bounds of a join's calls, where time says that a record finds no partner. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../support/millrace.ts'
import { firstTime, TestEngine } from './support/engine.ts'

test('the call for a record without a partner is given up in time, and those beside it go on', async (t) => {
  const engine = await TestEngine.start(t, 'bounded-join', {
    'broker.embedded.partitions': 1,
    'errors.processing': 'skip',
  })
  await engine.put('left', [
    { key: 'k', value: 1, timestamp: firstTime },
    { key: 'other', value: 2, timestamp: firstTime + 1 },
  ])
  for (const topic of ['left', 'right'])
    await engine.put(topic, [{ key: 'end', value: 3, timestamp: firstTime + 60_000 }])
  const told = async (): Promise<unknown[]> => (await engine.read('out')).map(({ key, value }) => [key, value])
  await eventually('all is told', async () => (await told()).length >= 2)
  assert.deepEqual((await told()).slice(0, 1), [['other', 2]])
  assert.equal(engine.state, 'RUNNING')
})
