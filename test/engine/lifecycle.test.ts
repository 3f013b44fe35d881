/** Pausing, restarting, and what state is worth over the lives of an application. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../support/millrace.ts'
import { byKey, type In, lastByKey, TestEngine } from './support/engine.ts'

const keys = 20
const records = (from: number, to: number): In[] =>
  Array.from({ length: to - from }, (_, i) => ({ key: `k${(from + i) % keys}`, value: from + i }))

async function check(engine: TestEngine, n: number): Promise<void> {
  const seen = lastByKey<number[]>(await engine.read('seen'))
  for (let key = 0; key < keys; key++) {
    const expected = records(0, n).flatMap((r) => (r.key === `k${key}` ? [r.value] : []))
    assert.deepEqual(seen[`k${key}`], expected)
  }
  const steps = byKey(await engine.read('seen'))
  for (const list of Object.values(steps)) {
    assert.deepEqual(
      list.map((entry) => (entry as number[]).length),
      list.map((_, i) => i + 1),
      'every update once',
    )
  }
  const sums = lastByKey<number>(await engine.read('sums'))
  for (let mod = 0; mod < 3; mod++) {
    const expected = records(0, n).reduce(
      (sum, r) => sum + ((r.value as number) % 3 === mod ? (r.value as number) : 0),
      0,
    )
    assert.equal(sums[`mod-${mod}`], expected)
  }
}

function folders(t: TestContext): { 'broker.bootstrap-servers': string; 'engine.state.dir': string } {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-lives-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return { 'broker.bootstrap-servers': `embedded:${join(folder, 'broker')}`, 'engine.state.dir': join(folder, 'state') }
}

describe('a paused application', () => {
  test('drains first, processes nothing then, and goes on where it was', async (t) => {
    const engine = await TestEngine.start(t, 'running-sum')
    await engine.put('numbers', records(0, 2000))
    await engine.reaches('RUNNING')
    const answer = engine.runtime.commands.pause()
    assert.deepEqual(answer, { ok: true, state: 'DRAINING' })
    await engine.reaches('PAUSED')
    const before = (await engine.read('seen')).length
    const committed = engine.runtime.view.offsets()
    await engine.put('numbers', records(2000, 2500))
    await sleep(300)
    assert.equal((await engine.read('seen')).length, before)
    assert.ok(committed !== null)
    assert.equal(engine.runtime.commands.pause().ok, false)
    assert.deepEqual(engine.runtime.commands.unpause(), { ok: true, state: 'RUNNING' })
    await engine.idle()
    await check(engine, 2500)
  })

  test('paused and unpaused in quick succession ends in the state asked for last', async (t) => {
    const engine = await TestEngine.start(t, 'running-sum')
    await engine.reaches('RUNNING')
    await engine.put('numbers', records(0, 1000))
    for (let i = 0; i < 20; i++) {
      assert.ok(engine.runtime.commands.pause().ok)
      assert.ok(engine.runtime.commands.unpause().ok)
    }
    assert.ok(engine.runtime.commands.pause().ok)
    await engine.reaches('PAUSED')
    const before = (await engine.read('seen')).length
    await engine.put('numbers', records(1000, 1100))
    await sleep(200)
    assert.equal((await engine.read('seen')).length, before)
    assert.ok(engine.runtime.commands.unpause().ok)
    await engine.idle()
    await check(engine, 1100)
  })
})

describe('state over several lives', () => {
  for (const [store, lives] of [
    ['memory', [2, 2, 2]],
    ['lmdb', [2, 3, 1]],
  ] as const) {
    test(`is whole each time: ${store} stores, ${lives.join(', then ')} lanes`, async (t) => {
      const config = { ...folders(t), 'engine.state.store': store }
      let n = 0
      for (const lanes of lives) {
        const engine = await TestEngine.start(t, 'running-sum', { ...config, 'engine.lanes.count': lanes })
        await engine.put('numbers', records(n, n + 500))
        n += 500
        await engine.idle()
        await check(engine, n)
        // What lies in memory is restored from the changelog; what lies on disk is there.
        if (n > 500) assert.equal(engine.restored() > 0, store === 'memory')
        assert.equal(await engine.stop(), 0)
      }
    })
  }

  test('is refused to a second process on the same folder', async (t) => {
    const config = { ...folders(t), 'engine.state.store': 'lmdb' }
    await TestEngine.start(t, 'running-sum', config)
    await assert.rejects(
      TestEngine.start(t, 'running-sum', { ...config, 'broker.bootstrap-servers': 'embedded:' }),
      (error) => (error as { code?: string }).code === 'STORE_LOCKED',
    )
  })
})

describe('what does not go together', () => {
  test('hot standby without exactly-once is refused in a sentence', async (t) => {
    const config = { 'ha.mode': 'hot-standby', 'engine.processing.guarantee': 'at-least-once' }
    await assert.rejects(TestEngine.start(t, 'running-sum', config), (error) => {
      assert.equal((error as { code?: string }).code, 'CONFIG_INVALID')
      assert.match(String(error), /needs engine.processing.guarantee exactly-once/)
      return true
    })
  })
})

describe('who waits until nothing is left to do', () => {
  const records = (value: object): In[] => [
    { key: 'a', value: { n: 1 } },
    { key: 'b', value },
  ]

  test('hears why that can never be, while the engine fails and afterwards', async (t) => {
    const engine = await TestEngine.start(t, 'faulty', { 'errors.processing': 'fail' })
    const waits = assert.rejects(engine.runtime.untilIdle(), { code: 'PROCESSING_FAILED', message: /order 2 is wrong/ })
    await engine.put('orders', records({ n: 2, fault: 'throws' }))
    await engine.reaches('FAILED')
    await waits
    await assert.rejects(engine.runtime.untilIdle(), { code: 'PROCESSING_FAILED' })
  })

  test('hears that the runtime was stopped before', async (t) => {
    const engine = await TestEngine.start(t, 'faulty')
    await engine.reaches('RUNNING')
    engine.runtime.commands.pause()
    await engine.put('orders', records({ n: 2 }))
    const refused = { code: 'USAGE', message: /stopped before all of its input was processed/ }
    const waits = assert.rejects(engine.runtime.untilIdle(), refused)
    await engine.runtime.stop()
    await waits
    await assert.rejects(engine.runtime.untilIdle(), refused)
  })
})

describe('a restart in place', () => {
  test('is not repeated for ever where every run ends at the same record', async (t) => {
    const engine = await TestEngine.start(t, 'never', {
      'commit-barrier.timeout-ms': 200,
      // The window would forgive every one of them.
      'commit-barrier.restart-window-ms': 1000,
      'commit-barrier.max-engine-restarts': 1,
      'runtime.exit-on-failure': true,
    })
    await engine.put('questions', [
      { key: 'a', value: 'how are you' },
      { key: 'b', value: 'unanswerable' },
    ])
    assert.equal(await engine.runtime.ended, 1)
    const { failure } = engine.runtime.view.state()
    assert.equal(failure?.code, 'RESTARTS_EXHAUSTED')
    assert.match(failure?.message ?? '', /did not reach the barrier in time/)
    assert.deepEqual(await engine.read('answers'), [], 'nothing of the epoch is committed')
  })

  test('follows a transaction that the broker aborted, and nothing is lost or told twice', async (t) => {
    const engine = await TestEngine.start(t, 'running-sum')
    await engine.put('numbers', records(0, 1000))
    await engine.idle()
    // Whoever takes the transactional identity aborts what is open under it: a broker's own clean-up does the same.
    const id = 'running-sum-main'
    await engine.put('numbers', records(1000, 3000))
    await engine.broker.initProducer(id, 10_000)
    await eventually('the engine has noticed', () =>
      engine.runtime.view.state().history.some((entry) => entry.state === 'RESTARTING'),
    )
    await engine.idle()
    await check(engine, 3000)
    assert.equal(engine.state, 'RUNNING')
  })

  test('keeps the wish to be paused', async (t) => {
    const engine = await TestEngine.start(t, 'running-sum')
    await engine.put('numbers', records(0, 500))
    await engine.idle()
    assert.ok(engine.runtime.commands.pause().ok)
    await engine.reaches('PAUSED')
    await engine.broker.initProducer('running-sum-main', 10_000)
    await engine.put('numbers', records(500, 600))
    await sleep(300)
    assert.ok(engine.runtime.commands.unpause().ok)
    await engine.idle()
    await check(engine, 600)
  })

  test('says nothing of what a thread fails on that was not waited for', async (t) => {
    const engine = await TestEngine.start(t, 'not-in-threads', { 'runtime.shutdown.timeout': 100 })
    const stopped = engine.stop()
    // The threads fail meanwhile. What they say is here only when the deadline has passed.
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000))
    assert.equal(await stopped, 0, JSON.stringify([engine.runtime.view.state(), engine.log]))
  })

  test('that comes to nothing leaves no commit under way', async (t) => {
    const engine = await TestEngine.start(t, 'slow-calls', {
      'errors.processing': 'fail',
      'commit-barrier.interval-ms': 100,
      'runtime.shutdown.timeout': 100,
    })
    await engine.reaches('RUNNING')
    await engine.put('calls', [{ key: 'a', value: { n: 1, ms: 30_000 } }])
    const barriers = () => engine.runtime.view.barriers()
    await eventually('a commit waits for the call', () => barriers()?.phase === 'AWAITING_LANE_ACKS')
    const epoch = barriers()?.epoch
    await engine.put('calls', [{ key: 'b', value: { n: 2, ms: 'no number' } }])
    await engine.reaches('FAILED')
    assert.deepEqual(
      [barriers()?.phase, barriers()?.startedAtMs, barriers()?.commitId, barriers()?.outstandingLanes],
      ['IDLE', null, null, []],
    )
    assert.equal(barriers()?.epoch, epoch)
  })

  test('fails by what its threads fail on', async (t) => {
    const engine = await TestEngine.start(t, 'not-in-threads')
    await engine.reaches('FAILED')
    assert.match(engine.runtime.view.state().failure?.message ?? '', /a module is there by half/)
    assert.notEqual(await engine.stop(), 0)
  })
})
