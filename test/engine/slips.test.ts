/** Slips of whoever writes an application or its input: each is told in a sentence. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { startRuntime } from '../../src/runtime/index.ts'
import { eventually, millrace } from '../support/millrace.ts'
import { appFile, byKey, firstTime, lastByKey, TestEngine } from './support/engine.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-slips-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const told = (engine: TestEngine, says: RegExp): boolean => engine.log.some(({ message }) => says.test(message))

describe('slips', () => {
  test('a function that throws is told with its file and line', async (t) => {
    const engine = await TestEngine.start(t, 'throwing')
    await engine.put('numbers', [{ key: 'a', value: 13 }])
    await engine.reaches('FAILED')
    const { failure } = engine.runtime.view.state()
    assert.match(failure?.message ?? '', /numbers\/\d at offset 0: not this one, thrown at refuse \(throwing\.ts:5\)$/)
  })

  for (const policy of ['skip', 'dead-letter'] as const) {
    test(`records that go no further are told once where the policy for them is ${policy}`, async (t) => {
      const engine = await TestEngine.start(t, 'throwing', {
        'errors.processing': policy,
        'errors.decoding': policy,
      })
      await engine.put('numbers', [
        { key: 'a', value: 13 },
        { key: 'a', value: 1 },
        { key: 'b', value: Buffer.from('{') },
      ])
      await engine.idle()
      // What failed last may be told only at the end.
      await engine.stop()
      const kept = { skip: ' keeps those of streams and tables', 'dead-letter': ' shows those that are dead letters' }[
        policy
      ]
      for (const what of ['failed in a function', 'could not be decoded']) {
        const lines = engine.log.filter(({ message }) => message.includes(what) && message.includes(kept))
        assert.equal(lines.length, 1, what)
      }
    })
  }

  test('names that differ from thread to thread are refused', async (t) => {
    const engine = await TestEngine.start(t, 'by-chance', { 'runtime.shutdown.timeout': 500 })
    await engine.reaches('FAILED')
    const { failure } = engine.runtime.view.state()
    assert.equal(failure?.code, 'APPLICATION_INVALID')
    assert.match(failure?.message ?? '', /another topology in each thread: .*counts-0.* on the control thread/)
  })

  test('timestamps in seconds and records without a key are told once', async (t) => {
    const engine = await TestEngine.start(t, 'running-sum')
    const records = Array.from({ length: 20 }, (_, i) => ({ key: null, value: i, timestamp: 1_700_000_000 + i }))
    await engine.put('numbers', records)
    await engine.idle()
    await eventually('seconds are told', () => told(engine, /timestamps of numbers look like seconds: .* 2023-11-14T/))
    await eventually('keys are told', () => told(engine, /records of sub-topology 0 have no key/))
    await engine.put('numbers', records)
    await engine.idle()
    assert.equal(engine.log.filter(({ message }) => /look like seconds/.test(message)).length, 1)
  })

  test('records that come too late are told, and told again when there are ten times as many', async (t) => {
    const engine = await TestEngine.start(t, 'counted-windows', { 'broker.embedded.partitions': 1 })
    const click = (second: number) => ({ key: 'a', value: { page: 'p' }, timestamp: firstTime + second * 1000 })
    const lines = (): string[] => engine.log.flatMap(({ level, message }) => (level === 'warn' ? [message] : []))
    const late = (count: number): RegExp =>
      new RegExp(`sub-topology 0 come too late .* dropped \\(${count} so far\\): .* longer grace`)
    await engine.put('clicks', [click(600), click(10)])
    await engine.idle()
    await eventually('the first one is told', () => lines().some((line) => late(1).test(line)))
    for (const count of [8, 1]) {
      await engine.put(
        'clicks',
        Array.from({ length: count }, (_, i) => click(20 + i)),
      )
      await engine.idle()
      await eventually('it is counted', () => engine.dropped('late') === 1 + (count === 8 ? 8 : 9))
    }
    await eventually('ten are told', () => lines().some((line) => late(10).test(line)))
    assert.equal(lines().filter((line) => / come too late /.test(line)).length, 2)
    assert.deepEqual(byKey(await engine.read('counts')), {})
  })

  test('records that are late for some of their windows are told, and a start says which windows wait for those above', async (t) => {
    const engine = await TestEngine.start(t, 'windows-behind', { 'broker.embedded.partitions': 1 })
    const waits =
      /KSTREAM-REDUCE-\d+ waits PT2S longer than its own grace, for results of KSTREAM-AGGREGATE-\d+ above it/
    assert.ok(
      engine.log.some(({ level, message }) => level === 'info' && waits.test(message)),
      engine.log.map(({ message }) => message).join('\n'),
    )
    // Windows begin at 0, 20, 40 s and so on; the one from 40 s is over at 100 s.
    const beginsAt = Math.ceil(firstTime / 60_000) * 60_000
    const at = (second: number) => ({ key: 'a', value: 1, timestamp: beginsAt + second * 1000 })
    await engine.put('clicks', [at(101), at(99)])
    await engine.idle()
    await eventually('it is told', () =>
      told(engine, /come too late for some of their windows and are in the others alone \(1 so far\): /),
    )
    assert.equal(engine.dropped('late_window'), 1)
    const rows = (await engine.read('hopping')).map(({ value }) => value as [start: number, count: number])
    const counts = (second: number) => rows.filter(([start]) => start === beginsAt + second * 1000).map(([, n]) => n)
    assert.deepEqual([counts(40), counts(60), counts(80)], [[], [1, 2], [1, 2]])
    // Put back, it would count twice in the windows that have it.
    assert.deepEqual(await engine.read('windows-behind-dead-letters'), [])
  })

  test('records without a value are told once where a function is given them that does not expect any', async (t) => {
    const engine = await TestEngine.start(t, 'nulls')
    const records = Array.from({ length: 40 }, (_, i) => ({ key: `k${i}`, value: i % 2 === 0 ? null : i }))
    for (const topic of ['known', 'rows', 'timed', 'counted', 'plain', 'plain']) await engine.put(topic, records)
    await engine.idle()
    const lines = engine.log.filter(({ message }) => /has no value/.test(message))
    assert.equal(lines.length, 1, lines.map(({ message }) => message).join('\n'))
    assert.match(lines[0]?.message ?? '', /^the record plain\/\d at offset \d+ has no value, .*`tombstones: true`/)
    assert.equal(lines[0]?.level, 'warn')
    const told = await engine.read('told')
    assert.equal(told.filter(({ value }) => value === 0).length, 40, 'as ever, the function is given null')
    assert.equal((await engine.read('untold')).filter(({ value }) => value === 0).length, 20)
  })

  test('times of day are not taken for seconds', async (t) => {
    const engine = await TestEngine.start(t, 'running-sum')
    await engine.put('numbers', [{ key: 'a', value: 1 }])
    await engine.idle()
    assert.ok(!told(engine, /look like seconds|have no key/))
  })

  test('an environment that is not read is told, as is a broker of its own', async (t) => {
    process.env.BROKER_BOOTSTRAP_SERVERS = 'kafka-1:9092'
    t.after(() => delete process.env.BROKER_BOOTSTRAP_SERVERS)
    const engine = await TestEngine.start(t, 'running-sum')
    assert.ok(told(engine, /the environment has BROKER_BOOTSTRAP_SERVERS, which is not read here/))
    assert.ok(told(engine, /a broker of its own in memory, empty at first/))
    assert.ok(!engine.log.some(({ message }) => message.includes('kafka-1')))
  })

  test('state and timers per key behind a change of the key are in one place, or left apart where that is asked for', async (t) => {
    const engine = await TestEngine.start(t, 'apart')
    const records = Array.from({ length: 300 }, (_, i) => ({ key: `k${i}`, value: i, timestamp: firstTime + i }))
    await engine.put('numbers', records)
    await engine.idle()
    assert.deepEqual(lastByKey(await engine.read('together')), { m0: 100, m1: 100, m2: 100 })
    const apart = Object.values(lastByKey<number>(await engine.read('apart')))
    assert.ok(apart.some((count) => count < 100))
    // The timer of a key is set anew with each of its records: one that fires early lay in another place.
    const later = [0, 1, 2, 3].map((partition) => ({ key: 'z', value: -1, timestamp: firstTime + 10_000, partition }))
    await engine.put('numbers', later)
    await engine.idle()
    const timed = byKey(await engine.read('timed'))
    for (const mod of [0, 1, 2]) assert.equal(timed[`m${mod}`]?.[0], firstTime + 297 + mod + 1000)
  })

  test('keys that are written in different ways where they are to meet are told, by a join or a timer', async (t) => {
    const engine = await TestEngine.start(t, 'unlike-keys')
    const lines = engine.log.filter(({ component }) => component === 'topology').map(({ message }) => message)
    assert.equal(lines.length, 2, lines.join('; '))
    assert.match(
      lines[0] ?? '',
      /meet by key at KSTREAM-JOIN-\d+, .* those of rows with json, those of KSTREAM-KEY-SELECT-\d+-repartition with int32/,
    )
    assert.match(lines[1] ?? '', /meet by key at timed, .* those of numbers with string, those of texts with json/)
    await engine.put('numbers', [{ key: 'a', value: 13 }])
    await engine.reaches('FAILED')
    const { failure } = engine.runtime.view.state()
    assert.match(failure?.message ?? '', /not this one, thrown at .*unlike-keys\.ts:5\)?$/)
  })

  test('an import without its extension is told as that', async () => {
    writeFileSync(join(folder, 'model.ts'), 'export const model = 1\n')
    writeFileSync(join(folder, 'app.ts'), "import { model } from './model'\nexport default model\n")
    await assert.rejects(
      startRuntime({ application: join(folder, 'app.ts'), log: () => undefined }),
      /app\.ts cannot be loaded: Cannot find module .*model' imported from .*; .*model\.ts is there: the import has to end with \.ts$/,
    )
    await assert.rejects(
      startRuntime({ application: join(folder, 'nowhere.ts'), log: () => undefined }),
      /there is no application module .*nowhere\.ts$/,
    )
  })

  test('a misspelt topic to feed is refused, one to print is told', async () => {
    const feed = join(folder, 'numbers.ndjson')
    writeFileSync(feed, `${JSON.stringify({ key: 'a', value: 1 })}\n`)
    const rest = ['--until-idle', '--set', 'runtime.http.enabled=false']
    const refused = await millrace(['run', appFile('running-sum'), '--feed', `nunbers=${feed}`, ...rest])
    assert.equal(refused.code, 2)
    assert.match(refused.stderr, /--feed: the application does not read 'nunbers'; did you mean 'numbers'\?/)
    const warned = await millrace([
      'run',
      appFile('running-sum'),
      '--feed',
      `numbers=${feed}`,
      '--print',
      'sum',
      '--print',
      'nowhere',
      ...rest,
    ])
    assert.equal(warned.code, 0, warned.stderr)
    assert.match(warned.stderr, /neither reads nor writes 'sum', so nothing of it is printed .*; did you mean 'sums'\?/)
    assert.match(
      warned.stderr,
      /nor writes 'nowhere', .* unless another program .*; name one of 'numbers', 'seen', 'sums'/,
    )
  })
})
