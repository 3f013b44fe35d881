/** When outputs leave for the broker: the first of them opens a transaction, whose time then runs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { usualSizes } from '../../src/base/sizes.ts'
import { defineApp, serdes } from '../../src/index.ts'
import type { Tamper } from '../simulation/faulty-broker.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

const application = () =>
  defineApp({
    applicationId: 'sim',
    build: (topology) => topology.stream('in', { key: serdes.string, value: serdes.json<number>() }).to('out'),
  })

const commitIntervalMs = 10_000
const aheadBytes = 4000

/** An engine whose lanes give each output on at once, and which commits when the interval is over. */
async function started(): Promise<{ engine: VirtualEngine; calls: string[] }> {
  const calls: string[] = []
  const tamper: Tamper = (name, args, call) => {
    if (name === 'produce' || name === 'endTransaction') calls.push(name)
    return call(args)
  }
  const sizes = { ...usualSizes, outputBytes: 1, aheadBytes }
  const settings = { commitIntervalMs, commitIdleIntervalMs: commitIntervalMs, transactionTimeoutMs: 60_000, sizes }
  const engine = new VirtualEngine({ compile: () => application().compile(), settings, tamper })
  await engine.start()
  await engine.runs()
  // A commit that was made behind the start, and one that is awaited by whoever waits for all.
  await engine.put('in', [{ key: 'first', value: 0 }])
  await engine.settled()
  calls.length = 0
  return { engine, calls }
}

test('few outputs leave with their commit: no transaction is open until then', async () => {
  const { engine, calls } = await started()
  for (let commit = 0; commit < 2; commit++) {
    await engine.put('in', [{ key: 'a', value: 1 }])
    await engine.passes(commitIntervalMs / 2)
    assert.equal(calls.length, 0)
    await engine.until('it is committed', () => calls.includes('endTransaction'))
    assert.deepEqual(calls.splice(0), ['produce', 'endTransaction'])
  }
})

test('many outputs leave ahead of their commit, and those after them at once', async () => {
  const { engine, calls } = await started()
  const records = Array.from({ length: aheadBytes / 10 }, (_, value) => ({ key: `k${value}`, value }))
  await engine.put('in', records)
  await engine.passes(commitIntervalMs / 4)
  assert.deepEqual(new Set(calls), new Set(['produce']))
  calls.length = 0
  await engine.put('in', [{ key: 'a', value: 1 }])
  await engine.passes(commitIntervalMs / 4)
  assert.deepEqual(calls, ['produce'])
  assert.equal((await engine.read('out')).length, 1, 'they are committed with the others')
  await engine.settled()
  assert.equal((await engine.read('out')).length, records.length + 2)
})
