/** Windows whose grace, and with it their retention, was changed between two starts: what was counted stays counted. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { test } from 'node:test'
import { startEmbeddedBroker, startRuntime } from '../../src/runtime/index.ts'
import { appFile, consume, firstTime, lastByKey, produce } from './support/engine.ts'

for (const store of ['lmdb', 'memory'] as const)
  for (const graces of [
    ['0s', '9s', '0s'],
    ['9s', '0s', '9s'],
  ])
    test(`windows go on where they stood (${store}, grace of ${graces.join(', then ')})`, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'millrace-graced-'))
      t.after(() => rmSync(folder, { recursive: true, force: true }))
      const broker = await startEmbeddedBroker({ partitions: 2 })
      t.after(() => broker.close())
      const keys = Array.from({ length: 200 }, (_, i) => `k${i}`)
      for (const [run, grace] of graces.entries()) {
        const records = keys.map((key) => ({ key, value: run, timestamp: firstTime + 5000 }))
        await produce(broker.client(), 'in', records)
        const application = pathToFileURL(appFile('graced'))
        application.search = new URLSearchParams({ grace }).toString()
        const config = { 'runtime.http.enabled': false, 'engine.state.store': store, 'engine.state.dir': folder }
        const runtime = await startRuntime({ application, broker, config, log: () => undefined })
        await runtime.untilIdle()
        await runtime.stop()
        const told = lastByKey(await consume(broker.client(), 'out'))
        assert.deepEqual(told, Object.fromEntries(keys.map((key) => [key, run + 1])))
      }
    })

const ways: ReadonlyArray<readonly [what: string, before: Record<string, string>]> = [
  ['records are waited for no longer', { late: '1h' }],
  ['the grace is taken away', { grace: '1h' }],
  ['a source that held event time is left out', { silent: '' }],
]
for (const store of ['lmdb', 'memory'] as const)
  for (const [what, before] of ways)
    test(`final results are told of windows that are over at once when ${what} (${store})`, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'millrace-closing-'))
      t.after(() => rmSync(folder, { recursive: true, force: true }))
      const broker = await startEmbeddedBroker({ partitions: 2 })
      t.after(() => broker.close())
      const keys = Array.from({ length: 20 }, (_, i) => `k${i}`)
      const config = { 'runtime.http.enabled': false, 'engine.state.store': store, 'engine.state.dir': folder }
      const run = async (search: Record<string, string>): Promise<void> => {
        const application = pathToFileURL(appFile('closing'))
        application.search = new URLSearchParams(search).toString()
        const runtime = await startRuntime({ application, broker, config, log: () => undefined })
        await runtime.untilIdle()
        await runtime.stop()
      }
      const each = (timestamp: number) => keys.map((key) => ({ key, value: 0, timestamp }))
      const seconds = Array.from({ length: 30 }, (_, i) => firstTime + i * 1000)
      await produce(broker.client(), 'in', seconds.flatMap(each))
      await run(before)
      // Nothing comes in this life, and what is over is still not told: the next one has to find it.
      await run({})
      await produce(broker.client(), 'in', each(firstTime + 100_000))
      await run({})
      const fives = seconds.filter((at) => at % 5000 === 0).map((start) => ({ start, count: 5 }))
      const ones = (before: number) => seconds.map((at) => ({ start: at - before, count: 1 }))
      const expected = { tumbling: fives, session: ones(0), sliding: ones(100) }
      for (const [topic, windows] of Object.entries(expected)) {
        const told = await consume(broker.client(), topic)
        for (const key of keys) {
          const own = told.filter((each) => each.key === key).map(({ value }) => value)
          assert.deepEqual(own, windows, `${topic} of ${key}`)
        }
      }
    })

for (const store of ['lmdb', 'memory'] as const)
  for (const [before, after] of [
    ['0s', '30s'],
    ['30s', '0s'],
  ] as const)
    test(`each final result is told once where the grace is ${before} and then ${after} (${store})`, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'millrace-closing-'))
      t.after(() => rmSync(folder, { recursive: true, force: true }))
      const broker = await startEmbeddedBroker({ partitions: 1 })
      t.after(() => broker.close())
      const config = { 'runtime.http.enabled': false, 'engine.state.store': store, 'engine.state.dir': folder }
      const run = async (grace: string, timestamps: readonly number[]): Promise<void> => {
        const records = timestamps.map((timestamp) => ({ key: 'k', value: 0, timestamp }))
        await produce(broker.client(), 'in', records)
        const application = pathToFileURL(appFile('closing'))
        application.search = new URLSearchParams({ grace, retention: '1h' }).toString()
        const runtime = await startRuntime({ application, broker, config, log: () => undefined })
        await runtime.untilIdle()
        await runtime.stop()
      }
      const seconds = Array.from({ length: 60 }, (_, i) => firstTime + i * 1000)
      await run(before, seconds)
      // Late for what was told; and nothing of what was not may be taken for told.
      await run(after, [firstTime + 20_000, firstTime + 100_000])
      await run(after, [firstTime + 200_000])
      const fives = seconds.filter((at) => at % 5000 === 0)
      for (const [topic, starts] of Object.entries({ tumbling: fives, session: seconds })) {
        const told = (await consume(broker.client(), topic)).map(({ value }) => value as { start: number })
        assert.deepEqual(
          told.map(({ start }) => start).filter((start) => start < firstTime + 60_000),
          starts,
          topic,
        )
      }
    })

test('a record that waits for the row of its time meets it, also where it is over at once', async (t) => {
  const broker = await startEmbeddedBroker({ partitions: 1 })
  t.after(() => broker.close())
  const run = async (late: string, seconds: readonly number[]): Promise<void> => {
    const records = seconds.map((second) => ({ key: 'k', value: second, timestamp: firstTime + second * 1000 }))
    const application = pathToFileURL(appFile('waiting-join'))
    application.search = new URLSearchParams({ late }).toString()
    const config = { 'runtime.http.enabled': false, 'engine.state.store': 'memory' } as const
    const runtime = await startRuntime({ application, broker, config, log: () => undefined })
    // Full topics at the first start; at the second one what is over is committed as such before event time moves.
    if (late === '0s') await runtime.untilIdle()
    for (const some of late === '0s' ? records.map((each) => [each]) : [records])
      for (const topic of ['in', 'rows']) await runtime.produce(topic, some)
    await runtime.untilIdle()
    await runtime.stop()
  }
  const seconds = Array.from({ length: 30 }, (_, second) => second)
  await run('1h', seconds)
  await run('0s', [40, 100])
  const told = (await consume(broker.client(), 'joined')).map(({ value }) => value)
  assert.deepEqual(
    told.slice(0, seconds.length),
    seconds.map((second) => [second, second]),
  )
})
