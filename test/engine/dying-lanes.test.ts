/** A lane's thread that ends by itself: the restart in place has another one in its stead, and nothing is lost or doubled. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { engineIndex } from '../../src/base/counters.ts'
import { eventually, startMillrace } from '../support/millrace.ts'
import { appFile, firstTime, type In, type Out, TestEngine } from './support/engine.ts'
import { web, why } from './support/why.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-dying-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const keys = 211
const groups = 13

interface Event extends In {
  readonly key: string
  readonly value: { readonly group: string; readonly dies?: string; readonly file?: string }
}

/** `at`: the number of the record that ends its thread. */
function events(from: number, count: number, at?: number, dies?: { dies: string; file: string }): Event[] {
  return Array.from({ length: count }, (_, i): Event => {
    const n = from + i
    const value = { group: `g${(n * 7) % groups}`, ...(n === at && dies) }
    return { key: `k${n % keys}`, value, timestamp: firstTime + n }
  })
}

/** Computed without the engine. */
function counted(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

/** Every count was told once: each next one is one more, and the last is the number of the records. */
function assertCounts(told: readonly Out[], expected: ReadonlyMap<string, number>): void {
  const seen = new Map<string, number>()
  for (const { key, value } of told) {
    const before = seen.get(key ?? '') ?? 0
    assert.equal(value, before + 1, `the count of ${key}`)
    seen.set(key ?? '', before + 1)
  }
  assert.deepEqual([...seen].sort(), [...expected].sort())
}

async function assertAll(engine: TestEngine, all: readonly Event[]): Promise<void> {
  assertCounts(await engine.read('by-key'), counted(all.map(({ key }) => key)))
  assertCounts(await engine.read('by-group'), counted(all.map(({ value }) => value.group)))
}

const restartsOf = (engine: TestEngine): number => engine.runtime.view.counters()?.engine[engineIndex.restarts] ?? 0
const aliveIn = (engine: TestEngine): number => engine.runtime.view.lanesAlive

describe('a lane whose thread ends', () => {
  test('while nothing is to be done is there again, with the rows of its stores, and its end is told', async (t) => {
    const file = join(folder, 'idle')
    const engine = await TestEngine.start(t, 'dying-lanes', web)
    const first = events(0, 500, 3, { dies: 'later', file })
    await engine.put('events', first)
    await engine.idle()
    writeFileSync(file, '')
    await eventually('it has restarted', () => restartsOf(engine) === 1 && engine.state === 'RUNNING')
    assert.equal(aliveIn(engine), 2)
    const second = events(500, 500, 700, { dies: 'later', file })
    await engine.put('events', second)
    await engine.idle()
    await assertAll(engine, [...first, ...second])
    const told = engine.log.find(({ level }) => level === 'error')
    assert.match(told?.message ?? '', /^lane-\d has ended: .* \(dying-lanes\.ts:\d+\): connection terminated/)

    writeFileSync(file, '')
    await eventually('it has restarted again', () => restartsOf(engine) === 2 && engine.state === 'RUNNING')
    const restarts = (await why(engine)).findings.find(({ code }) => code === 'RESTARTS')
    assert.match(restarts?.sentence ?? '', /connection terminated unexpectedly/)
    assert.match(restarts?.next ?? '', /of the application, or of a library/)
    assert.doesNotMatch(restarts?.next ?? '', /maintainers of Millrace/)
    const third = events(1000, 500)
    await engine.put('events', third)
    await engine.idle()
    await assertAll(engine, [...first, ...second, ...third])
  })

  test('of a promise that nobody handles is there again, whatever the policy for records, and it says of what', async (t) => {
    const engine = await TestEngine.start(t, 'dying-lanes', { ...web, 'errors.processing': 'skip' })
    const all: Event[] = []
    for (const round of [1, 2]) {
      const some = events(all.length, 500, all.length + 250, { dies: 'rejection', file: join(folder, `told-${round}`) })
      all.push(...some)
      await engine.put('events', some)
      await eventually('it has restarted', () => restartsOf(engine) === round && engine.state === 'RUNNING')
      await engine.idle()
    }
    await assertAll(engine, all)
    assert.equal(aliveIn(engine), 2)
    const told = engine.log.filter(({ level }) => level === 'error')
    const cause =
      /nobody handled the rejection of a promise, thrown at refresh \(dying-lanes\.ts:\d+\): the token cannot be refreshed/
    assert.equal(told.length, 2)
    for (const { message, fields } of told) {
      assert.match(message, cause)
      assert.match(String(fields?.stack), /^Error: the token cannot be refreshed\n +at refresh /)
    }
    const restarts = (await why(engine)).findings.find(({ code }) => code === 'RESTARTS')
    assert.match(restarts?.sentence ?? '', cause)
    assert.match(restarts?.next ?? '', /await or return the promise/)
    assert.doesNotMatch(restarts?.next ?? '', /dead-letter|maintainers of Millrace/)
  })

  for (const store of ['memory', 'lmdb']) {
    for (const dies of ['timer', 'exit', 'rejection']) {
      test(`while records wait, by ${dies}, loses and doubles none (${store})`, async (t) => {
        const engine = await TestEngine.start(t, 'dying-lanes', {
          'engine.state.store': store,
          ...(store === 'lmdb' && { 'engine.state.dir': join(folder, `${store}-${dies}`) }),
        })
        const file = join(folder, `once-${store}-${dies}`)
        // Two of them, in the middle and behind it, of different keys: it may be the other lane.
        const all = [
          ...events(0, 12_000, 6_000, { dies, file: `${file}-1` }),
          ...events(12_000, 8_000, 15_001, { dies, file: `${file}-2` }),
        ]
        await engine.put('events', all)
        await engine.idle()
        assert.equal(restartsOf(engine) >= 1, true, 'a thread has ended')
        assert.equal(aliveIn(engine), 2)
        await assertAll(engine, all)
      })
    }
  }

  test('not of a record whose result nobody waits for: the engine fails, and names it', async (t) => {
    const engine = await TestEngine.start(t, 'let-go')
    await engine.put('orders', [{ key: 'a', value: { n: 1 } }])
    await eventually('the engine is FAILED', () => engine.state === 'FAILED')
    const { failure } = engine.runtime.view.state()
    assert.equal(failure?.code, 'PROCESSING_FAILED')
    assert.match(failure?.message ?? '', /the record orders\/\d at offset 0: the ledger is closed/)
    assert.deepEqual({ topic: failure?.record?.topic, offset: failure?.record?.offset }, { topic: 'orders', offset: 0 })
    assert.equal(restartsOf(engine), 0)
  })

  test('again and again ends the process once the restarts are used up, and it says of what', async () => {
    const feed = join(folder, 'always.ndjson')
    const lines = events(0, 50, 20, { dies: 'always', file: '' })
    writeFileSync(feed, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    const settings = ['runtime.http.enabled=false', 'engine.lanes.count=2', 'commit-barrier.max-engine-restarts=1']
    const args = ['run', appFile('dying-lanes'), '--feed', `events=${feed}`]
    const running = startMillrace([...args, ...settings.flatMap((each) => ['--set', each])], { timeoutMs: 60_000 })
    const { code, stderr } = await running.result
    assert.equal(code, 1, stderr)
    assert.match(stderr, /RUNNING → RESTARTING/)
    assert.match(stderr, /^millrace: .*restarted in place.*lane-\d has ended: its thread ended with exit code 5/m)
    assert.doesNotMatch(stderr, /LANE_STUCK|did not come back/)
  })
})
