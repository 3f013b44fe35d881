/** A lane that never comes back from a function: the process goes on answering, and ends properly. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { eventually, type RunningCommand, startMillrace } from '../support/millrace.ts'
import { appFile, TestEngine } from './support/engine.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-stuck-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function feedFile(name: string, lines: readonly object[]): string {
  const file = join(folder, name)
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  return file
}

const steps = Array.from({ length: 50 }, (_, n) => ({ key: `k${n % 5}`, value: 'step', timestamp: 1000 + n }))
const healthy = feedFile('healthy.ndjson', steps)
const stuck = feedFile('stuck.ndjson', [...steps, { key: 'k1', value: 'for ever', timestamp: 2000 }])

function start(feed: string, settings: readonly string[]): RunningCommand {
  const all = ['runtime.http.port=0', 'runtime.http.host=127.0.0.1', 'engine.lanes.count=2', ...settings]
  const args = ['run', appFile('endless'), '--feed', `steps=${feed}`, ...all.flatMap((setting) => ['--set', setting])]
  return startMillrace(args, { timeoutMs: 60_000 })
}

describe('a lane in an endless loop', () => {
  test('restarts the engine, which finds that the lane does not come back, and the process ends with 70', async () => {
    const running = start(stuck, ['commit-barrier.timeout-ms=500'])
    const { code, stderr } = await running.result
    assert.equal(code, 70, stderr)
    assert.match(stderr, /lane-\d did not come back from a function of the application/)
    assert.match(stderr, /did not (reach the barrier|apply the commit) in time/)
  })

  test('does not keep a signalled process from ending by its deadline, with 70', async () => {
    const running = start(stuck, ['runtime.shutdown.timeout=500'])
    await eventually('it runs', () => /→ RUNNING/.test(running.stderr()))
    await eventually('the feed is in', () => running.stderr().length > 0)
    await new Promise((done) => setTimeout(done, 500))
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.result
    assert.equal(code, 70, stderr)
  })

  test('does not keep the second signal from ending the process at once', async () => {
    const running = start(stuck, ['runtime.shutdown.timeout=50000'])
    await eventually('it runs', () => /→ RUNNING/.test(running.stderr()))
    await new Promise((done) => setTimeout(done, 500))
    running.child.kill('SIGTERM')
    await eventually('it is stopping', () => /STOPPING|DRAINING/.test(running.stderr()))
    running.child.kill('SIGTERM')
    const { signal } = await running.result
    assert.equal(signal, 'SIGTERM')
  })

  test('leaves the control thread free: health is answered as quickly as ever', async (t) => {
    const engine = await TestEngine.start(t, 'endless', {
      'runtime.http.enabled': true,
      'runtime.http.port': 0,
      'runtime.http.host': '127.0.0.1',
      'runtime.shutdown.timeout': 500,
    })
    await engine.put('steps', steps)
    await engine.idle()
    const usual = await medianAnswerMs(engine.runtime.url ?? '')
    await engine.put('steps', [{ key: 'k1', value: 'for ever' }])
    await eventually('a lane is at the function', () =>
      (engine.runtime.view.barriers()?.lanes ?? []).some((lane) => lane.node !== null),
    )
    const whileStuck = await medianAnswerMs(engine.runtime.url ?? '')
    t.diagnostic(`health in ${usual.toFixed(1)} ms, with a stuck lane in ${whileStuck.toFixed(1)} ms`)
    // The loop takes one of the machine's cores: what would show is an answer that waits for it.
    assert.ok(whileStuck < 20 * usual + 50)
    assert.equal(await engine.runtime.stop(), 70)
  })

  test('is not what a healthy run of the same application shows', async () => {
    const running = start(healthy, [])
    await eventually('it runs', () => /→ RUNNING/.test(running.stderr()))
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.result
    assert.equal(code, 0, stderr)
  })
})

async function medianAnswerMs(url: string): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < 15; i++) {
    const before = performance.now()
    const response = await fetch(`${url}/health/live`)
    await response.text()
    times.push(performance.now() - before)
  }
  return times.sort((a, b) => a - b)[7] as number
}

describe('a lane that is slow at the end of a shutdown', () => {
  /** Many quick records, then those that take so long each: they are let in before anybody knows how slow they are. */
  function turning(name: string, ms: number, records: number): string {
    const quick = Array.from({ length: 20_000 }, (_, n) => ({
      key: `k${n % 50}`,
      value: { ms: 0 },
      timestamp: 1000 + n,
    }))
    const slow = Array.from({ length: records }, (_, n) => ({
      key: `k${n % 50}`,
      value: { ms },
      timestamp: 90_000 + n,
    }))
    return feedFile(name, [...quick, ...slow])
  }

  async function ends(feed: string): Promise<{ readonly code: number | null; readonly stderr: string }> {
    const settings = ['runtime.http.enabled=false', 'engine.lanes.count=1', 'runtime.shutdown.timeout=3000']
    const args = ['run', appFile('turning'), '--feed', `steps=${feed}`, ...settings.flatMap((set) => ['--set', set])]
    const running = startMillrace(args, { timeoutMs: 60_000 })
    await eventually('it runs', () => /→ RUNNING/.test(running.stderr()))
    await new Promise((done) => setTimeout(done, 3000))
    running.child.kill('SIGTERM')
    return running.result
  }

  test('is not called stuck: what it had before it is replayed at the next start', async () => {
    const { code, stderr } = await ends(turning('slow.ndjson', 100, 1000))
    assert.match(stderr, /the shutdown was not over after 3000 ms.*replayed at the next start/)
    assert.doesNotMatch(stderr, /did not come back/)
    assert.equal(code, 0, stderr)
  })

  test('is called stuck where it has finished nothing', async () => {
    const { code, stderr } = await ends(turning('stuck-for-long.ndjson', 30_000, 2))
    assert.match(stderr, /lane-0 did not come back from a function of the application before the end of the shutdown/)
    assert.equal(code, 70, stderr)
  })
})
